//! Texts to vectors: an encoder on a device.

use std::{
    cell::RefCell,
    collections::HashMap,
    ops::{ControlFlow, Range},
    rc::Rc,
};

use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan, Weights},
    gpu::work_bytes,
    graph::{Step, Value},
    ops::rope_table,
};
use rullama_gguf::{Gguf, Optional};
use rullama_models::{
    Catalog,
    embedding::{EmbeddingConfig, EmbeddingInputs, Pooling, embedding},
    gemma4::Kind,
};
use rullama_tokenizer::{Special, Tokenizer};

use crate::{
    error::RuntimeError,
    loader::{Progress, all_weights},
    vocabulary,
};

/// Tokens of a pass, at most, unless a single text is longer.
pub const BATCH_TOKENS: usize = 4096;
/// Texts of a pass, at most.
const BATCH_TEXTS: usize = 64;
/// Fewest tokens that a graph is made for.
const LEAST_TOKENS: usize = 32;

/// What a text is for: the model was trained with these words before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmbeddingPrompt {
    /// No prefix.
    #[default]
    None,
    /// A question that documents answer.
    Query,
    /// A document that is to be found.
    Document,
    /// A question that a document answers word for word.
    QuestionAnswering,
    /// A statement to be checked.
    FactChecking,
    /// To be sorted into classes.
    Classification,
    /// To be grouped with others.
    Clustering,
    /// To be compared with others like it.
    Similarity,
    /// A question that code answers.
    CodeRetrieval,
    /// To be summed up.
    Summarization,
}

impl EmbeddingPrompt {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("none", Self::None),
        ("query", Self::Query),
        ("document", Self::Document),
        ("question-answering", Self::QuestionAnswering),
        ("fact-checking", Self::FactChecking),
        ("classification", Self::Classification),
        ("clustering", Self::Clustering),
        ("similarity", Self::Similarity),
        ("code-retrieval", Self::CodeRetrieval),
        ("summarization", Self::Summarization),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, prompt)| *prompt)
    }

    /// The words.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Query => "task: search result | query: ",
            Self::Document => "title: none | text: ",
            Self::QuestionAnswering => "task: question answering | query: ",
            Self::FactChecking => "task: fact checking | query: ",
            Self::Classification => "task: classification | query: ",
            Self::Clustering => "task: clustering | query: ",
            Self::Similarity => "task: sentence similarity | query: ",
            Self::CodeRetrieval => "task: code retrieval | query: ",
            Self::Summarization => "task: summarization | query: ",
        }
    }
}

/// How texts become vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedOptions {
    /// What stands before each text.
    pub prompt: EmbeddingPrompt,
    /// Keeps so many numbers of each vector; all of them without it.
    pub dimensions: Option<usize>,
}

/// Vectors, each of length one.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// One for each text.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all texts.
    pub tokens: usize,
    /// Texts that were longer than the model reads, and were cut.
    pub cut: usize,
}

/// An encoder whose weights are on a device.
#[derive(Debug)]
pub struct Embedder {
    device: Device,
    config: EmbeddingConfig,
    catalog: Catalog,
    weights: Weights,
    tokenizer: Option<Tokenizer>,
    /// Whether texts begin and end with tokens of their own.
    ends: (bool, bool),
    /// Graphs by tokens and texts.
    prepared: RefCell<HashMap<(usize, usize), PreparedGraph>>,
}

/// A graph with its plan, and its result.
type PreparedGraph = Rc<(Plan, Value)>;

impl Embedder {
    /// Loads the encoder of a file; `progress` may cancel.
    ///
    /// # Errors
    /// If the file is no encoder we can run, or does not fit the device.
    pub async fn load(
        gguf: &Gguf,
        device: Device,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Self, RuntimeError> {
        let config = EmbeddingConfig::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        let graph = embedding(&config, &catalog, (LEAST_TOKENS, 1)).graph;
        let weights = all_weights(gguf, &device, &[graph], progress).await?;
        let flag = |name: &str| -> Result<bool, RuntimeError> {
            Ok(gguf.bool(&format!("tokenizer.ggml.{name}")).optional()?.unwrap_or(true))
        };
        let ends = (flag("add_bos_token")?, flag("add_eos_token")?);
        let tokenizer = vocabulary::tokenizer(gguf).ok();
        let prepared = RefCell::default();
        Ok(Self { device, config, catalog, weights, tokenizer, ends, prepared })
    }

    /// What the file's keys say.
    pub fn config(&self) -> &EmbeddingConfig {
        &self.config
    }

    /// Where it runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of weights on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes()
    }

    /// Bytes of weights, and of what a pass of a full batch takes, before anything is loaded.
    ///
    /// # Errors
    /// If the file is no encoder we can run.
    pub fn memory_of_file(gguf: &Gguf) -> Result<(u64, u64), RuntimeError> {
        let config = EmbeddingConfig::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        let graph = embedding(&config, &catalog, (BATCH_TOKENS, BATCH_TEXTS)).graph;
        let bytes = |(name, _): (&str, _)| gguf.tensor(name).map_or(0, |tensor| tensor.nbytes());
        Ok((catalog.iter().map(bytes).sum(), work_bytes(&graph)))
    }

    /// The tokens of a text, cut to what the model reads, and whether it was.
    ///
    /// # Errors
    /// If the file has no usable vocabulary.
    pub fn tokens(&self, text: &str) -> Result<(Vec<u32>, bool), RuntimeError> {
        let tokenizer = self.tokenizer.as_ref().ok_or(RuntimeError::NoVocabulary)?;
        let mut ids = Vec::new();
        ids.extend(tokenizer.bos().filter(|_| self.ends.0));
        ids.extend(tokenizer.encode(text, Special::None));
        let end = tokenizer.eos().filter(|_| self.ends.1);
        let most = self.config.context - usize::from(end.is_some());
        let cut = ids.len() > most;
        ids.truncate(most);
        ids.extend(end);
        Ok((ids, cut))
    }

    /// Vectors of texts.
    ///
    /// # Errors
    /// If there is no vocabulary, the vectors have fewer numbers than requested, or the device fails.
    pub async fn embed(
        &self,
        texts: &[&str],
        options: EmbedOptions,
    ) -> Result<Embeddings, RuntimeError> {
        let mut all = Vec::with_capacity(texts.len());
        let mut cut = 0;
        for text in texts {
            let (ids, was_cut) = self.tokens(&format!("{}{text}", options.prompt.prefix()))?;
            cut += usize::from(was_cut);
            all.push(ids);
        }
        let vectors = self.embed_tokens(&all, options.dimensions).await?;
        Ok(Embeddings { vectors, tokens: all.iter().map(Vec::len).sum(), cut })
    }

    /// Vectors of texts that are tokens already, each of length one.
    ///
    /// # Errors
    /// If a text is empty or too long, a token does not exist, the vectors have fewer numbers than requested, or the device fails.
    pub async fn embed_tokens(
        &self,
        texts: &[Vec<u32>],
        dimensions: Option<usize>,
    ) -> Result<Vec<Vec<f32>>, RuntimeError> {
        let kept = dimensions.unwrap_or(self.config.out);
        if kept == 0 || kept > self.config.out {
            return Err(RuntimeError::Dimensions { asked: kept, most: self.config.out });
        }
        for text in texts {
            self.check(text)?;
        }
        let mut vectors = Vec::with_capacity(texts.len());
        let mut first = 0;
        while first < texts.len() {
            let batch = batch(&texts[first..]);
            let rows = self.run(&texts[first..first + batch]).await?;
            vectors.extend(
                rows.chunks_exact(self.config.out).take(batch).map(|row| unit(&row[..kept])),
            );
            first += batch;
        }
        Ok(vectors)
    }

    fn check(&self, text: &[u32]) -> Result<(), RuntimeError> {
        let (context, count) = (self.config.context, self.config.vocabulary);
        if text.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        if text.len() > context {
            return Err(RuntimeError::ContextFull {
                tokens: text.len(),
                context,
                trained: context,
            });
        }
        match text.iter().find(|id| **id as usize >= count) {
            Some(id) => Err(RuntimeError::NoSuchToken { id: *id, count }),
            None => Ok(()),
        }
    }

    /// One pass over some texts.
    async fn run(&self, texts: &[Vec<u32>]) -> Result<Vec<f32>, RuntimeError> {
        let count: usize = texts.iter().map(Vec::len).sum();
        let tokens = count.next_power_of_two().max(LEAST_TOKENS);
        let slots = texts.len().next_power_of_two();
        let prepared = self.prepared(tokens, slots).await?;
        let (plan, result) = &*prepared;
        self.write(plan, texts, (tokens, slots));
        let step = Step { position: 0, count: count as u32, ..Step::default() };
        match plan.run_reading(&step, &[*result]).await?.wait().await?.pop() {
            Some(Data::F32(rows)) => Ok(rows),
            other => panic!("vectors are numbers, not {other:?}"),
        }
    }

    async fn prepared(&self, tokens: usize, texts: usize) -> Result<PreparedGraph, RuntimeError> {
        if let Some(prepared) = self.prepared.borrow().get(&(tokens, texts)) {
            return Ok(prepared.clone());
        }
        let encoder = embedding(&self.config, &self.catalog, (tokens, texts));
        let mut memory = Memory::new(&self.device);
        let plan = Plan::new(encoder.graph, &self.weights, &mut memory).await?;
        let prepared = Rc::new((plan, encoder.result));
        self.prepared.borrow_mut().insert((tokens, texts), prepared.clone());
        Ok(prepared)
    }

    /// Writes all a pass reads. Tokens after the last text see themselves and count nothing.
    fn write(&self, plan: &Plan, texts: &[Vec<u32>], (tokens, slots): (usize, usize)) {
        let config = &self.config;
        let mut ids = texts.concat();
        ids.resize(tokens, 0);
        let ranges = ranges(texts);
        let mut places: Vec<u32> = ranges.iter().flat_map(|range| 0..range.len() as u32).collect();
        places.resize(tokens, 0);
        plan.write_ids(EmbeddingInputs::IDS, ids);
        for (kind, rope, spans_name, base, reach) in [
            (
                Kind::Sliding,
                EmbeddingInputs::ROPE_SLIDING,
                EmbeddingInputs::SPANS_SLIDING,
                config.rope.sliding,
                config.reach,
            ),
            (
                Kind::Global,
                EmbeddingInputs::ROPE_GLOBAL,
                EmbeddingInputs::SPANS_GLOBAL,
                config.rope.global,
                usize::MAX,
            ),
        ] {
            if let Some(head) = config.head(kind) {
                let longest = places.iter().max().map_or(0, |place| place + 1);
                let table = rope_table(0..longest, base.into(), head, None);
                let rows = places.iter().flat_map(|place| &table[*place as usize * head..][..head]);
                plan.write_numbers(rope, rows.copied().collect());
                plan.write_ids(spans_name, spans(&ranges, reach, tokens));
            }
        }
        if let Some(each) = config.per_layer {
            plan.write_numbers(EmbeddingInputs::UNTURNED, [1.0, 0.0].repeat(tokens * each / 2));
        }
        let mut pool = vec![0.0; slots * tokens];
        for (range, row) in ranges.iter().zip(pool.chunks_exact_mut(tokens)) {
            match config.pooling {
                Pooling::Mean => row[range.clone()].fill((range.len() as f64).recip() as f32),
                Pooling::First => row[range.start] = 1.0,
                Pooling::Last => row[range.end - 1] = 1.0,
            }
        }
        plan.write_numbers(EmbeddingInputs::POOL, pool);
    }
}

/// Where texts lie, one after the other.
fn ranges(texts: &[Vec<u32>]) -> Vec<Range<usize>> {
    let mut end = 0;
    let range = |text: &Vec<u32>| {
        end += text.len();
        end - text.len()..end
    };
    texts.iter().map(range).collect()
}

/// What each token sees: its text, so far to both sides.
fn spans(texts: &[Range<usize>], reach: usize, tokens: usize) -> Vec<u32> {
    let span = |text: &Range<usize>, at: usize| {
        let first = at.saturating_sub(reach).max(text.start);
        [first as u32, at.saturating_add(reach).saturating_add(1).min(text.end) as u32]
    };
    let live = texts.iter().flat_map(|text| text.clone().flat_map(move |at| span(text, at)));
    let mut spans: Vec<u32> = live.collect();
    let dead = (spans.len() / 2..tokens).flat_map(|at| [at as u32, at as u32 + 1]);
    spans.extend(dead.collect::<Vec<_>>());
    spans
}

/// How many of the first texts are computed at once.
fn batch(texts: &[Vec<u32>]) -> usize {
    let mut tokens = 0;
    let fits = |text: &&Vec<u32>| {
        tokens += text.len();
        tokens <= BATCH_TOKENS
    };
    texts.iter().take(BATCH_TEXTS).take_while(fits).count().max(1)
}

/// A vector of length one.
fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let scale = if length > 0.0 { length.recip() } else { 0.0 };
    vector.iter().map(|x| (f64::from(*x) * scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::{batch, spans, unit};

    #[test]
    fn tokens_see_their_text_and_no_further() {
        assert_eq!(spans(&[0..2, 2..5], usize::MAX, 6), [0, 2, 0, 2, 2, 5, 2, 5, 2, 5, 5, 6]);
        assert_eq!(spans(&[0..4, 4..5], 1, 5), [0, 2, 0, 3, 1, 4, 2, 4, 4, 5]);
    }

    #[test]
    fn batches_have_room() {
        let texts = |lengths: &[usize]| lengths.iter().map(|n| vec![0; *n]).collect::<Vec<_>>();
        assert_eq!(batch(&texts(&[10, 20, 5000, 3])), 2);
        assert_eq!(batch(&texts(&[5000, 3])), 1);
        assert_eq!(batch(&texts(&[1; 100])), 64);
    }

    #[test]
    fn vectors_have_length_one() {
        assert_eq!(unit(&[3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(unit(&[0.0, 0.0]), [0.0, 0.0]);
    }
}
