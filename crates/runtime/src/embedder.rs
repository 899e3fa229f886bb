//! Text embeddings.

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
    decoder::Kind,
    embedding::{EmbeddingConfig, EmbeddingInputs, Pooling, embedding},
};
use rullama_tokenizer::{Special, Tokenizer};

use crate::{
    background::Background,
    error::RuntimeError,
    loader::{Progress, all_weights},
    vocabulary::FileVocabulary,
};

/// Maximum tokens of a pass, unless a single text is longer.
pub const BATCH_TOKENS: usize = 4096;
/// Maximum texts of a pass.
const BATCH_TEXTS: usize = 64;
/// Token capacity of the smallest graph.
const MIN_TOKENS: usize = 32;

/// Task of a text: selects the prefix that the model was trained with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmbeddingPrompt {
    /// No prefix.
    #[default]
    None,
    /// A search query.
    Query,
    /// A document to be searched.
    Document,
    /// A question answered by a passage.
    QuestionAnswering,
    /// A statement to be fact-checked.
    FactChecking,
    /// Text to be classified.
    Classification,
    /// Text to be clustered.
    Clustering,
    /// Text for similarity comparison.
    Similarity,
    /// A query for code.
    CodeRetrieval,
    /// Text to be summarised.
    Summarization,
}

impl EmbeddingPrompt {
    /// All prompts, by name.
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

    /// The prompt with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, prompt)| *prompt)
    }

    /// The prefix.
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

/// Options of [`Embedder::embed`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedOptions {
    /// Prefix of each text.
    pub prompt: EmbeddingPrompt,
    /// Truncates vectors to this many dimensions.
    pub dimensions: Option<usize>,
}

/// Embeddings, normalised to length 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// One vector per text.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all texts.
    pub tokens: usize,
    /// Number of texts that were truncated to the model's context.
    pub cut: usize,
}

/// A text embedding model on a device.
#[derive(Debug)]
pub struct Embedder {
    device: Device,
    config: EmbeddingConfig,
    catalog: Catalog,
    weights: Weights,
    tokenizer: Option<Tokenizer>,
    /// Whether BOS and EOS are added.
    ends: (bool, bool),
    /// Graphs by token and text capacity.
    prepared: RefCell<HashMap<(usize, usize), PreparedGraph>>,
}

/// A plan and its result.
type PreparedGraph = Rc<(Plan, Value)>;

impl Embedder {
    /// Loads the embedding model of a file; `progress` may cancel.
    ///
    /// # Errors
    /// If the file is no supported embedding model, or does not fit the device.
    pub async fn load(
        gguf: &Gguf,
        device: Device,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Self, RuntimeError> {
        let config = EmbeddingConfig::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        let graph = embedding(&config, &catalog, (MIN_TOKENS, 1)).graph;
        let tokenizer = FileVocabulary::new(gguf).ok().map(FileVocabulary::start);
        let weights = all_weights(gguf, &device, &[graph], progress).await?;
        let flag = |name: &str| -> Result<bool, RuntimeError> {
            Ok(gguf.bool(&format!("tokenizer.ggml.{name}")).optional()?.unwrap_or(true))
        };
        let ends = (flag("add_bos_token")?, flag("add_eos_token")?);
        let tokenizer = tokenizer.and_then(Background::finish);
        let prepared = RefCell::default();
        Ok(Self { device, config, catalog, weights, tokenizer, ends, prepared })
    }

    /// The model's configuration.
    pub fn config(&self) -> &EmbeddingConfig {
        &self.config
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of weights on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes()
    }

    /// Estimated bytes of weights and of a full batch's work buffers, from the file's header.
    ///
    /// # Errors
    /// If the file is no supported embedding model.
    pub fn memory_of_file(gguf: &Gguf) -> Result<(u64, u64), RuntimeError> {
        let config = EmbeddingConfig::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        let graph = embedding(&config, &catalog, (BATCH_TOKENS, BATCH_TEXTS)).graph;
        let bytes = |(name, _): (&str, _)| gguf.tensor(name).map_or(0, |tensor| tensor.nbytes());
        Ok((catalog.iter().map(bytes).sum(), work_bytes(&graph)))
    }

    /// The tokens of a text, truncated to the context, and whether they were truncated.
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

    /// Embeds texts.
    ///
    /// # Errors
    /// If there is no vocabulary, the model has fewer dimensions than requested, or the device fails.
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

    /// Embeds tokenized texts; vectors have length 1.
    ///
    /// # Errors
    /// If a text is empty or too long, a token does not exist, the model has fewer dimensions than requested, or the device fails.
    pub async fn embed_tokens(
        &self,
        texts: &[Vec<u32>],
        dimensions: Option<usize>,
    ) -> Result<Vec<Vec<f32>>, RuntimeError> {
        let kept = dimensions.unwrap_or(self.config.out);
        if kept == 0 || kept > self.config.out {
            return Err(RuntimeError::Dimensions { requested: kept, most: self.config.out });
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

    /// One pass over a batch of texts.
    async fn run(&self, texts: &[Vec<u32>]) -> Result<Vec<f32>, RuntimeError> {
        let count: usize = texts.iter().map(Vec::len).sum();
        let tokens = count.next_power_of_two().max(MIN_TOKENS);
        let slots = texts.len().next_power_of_two();
        let prepared = self.prepared(tokens, slots).await?;
        let (plan, result) = &*prepared;
        self.write(plan, texts, (tokens, slots));
        let step = Step { position: 0, count: count as u32, ..Step::default() };
        match plan.run_reading(&step, &[*result]).await?.wait().await?.pop() {
            Some(Data::F32(rows)) => Ok(rows),
            other => panic!("embeddings are f32, not {other:?}"),
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

    /// Writes the inputs of a pass. Padding tokens attend to themselves and have pooling weight 0.
    fn write(&self, plan: &Plan, texts: &[Vec<u32>], (tokens, slots): (usize, usize)) {
        let config = &self.config;
        let mut ids = texts.concat();
        ids.resize(tokens, 0);
        let ranges = ranges(texts);
        let mut positions: Vec<u32> =
            ranges.iter().flat_map(|range| 0..range.len() as u32).collect();
        positions.resize(tokens, 0);
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
                let longest = positions.iter().max().map_or(0, |position| position + 1);
                let table = rope_table(0..longest, base.into(), head, None);
                let rows = positions
                    .iter()
                    .flat_map(|position| &table[*position as usize * head..][..head]);
                plan.write_f32(rope, rows.copied().collect());
                plan.write_ids(spans_name, spans(&ranges, reach, tokens));
            }
        }
        if let Some(each) = config.per_layer {
            plan.write_f32(EmbeddingInputs::IDENTITY_ROPE, [1.0, 0.0].repeat(tokens * each / 2));
        }
        let mut pool = vec![0.0; slots * tokens];
        for (range, row) in ranges.iter().zip(pool.chunks_exact_mut(tokens)) {
            match config.pooling {
                Pooling::Mean => row[range.clone()].fill((range.len() as f64).recip() as f32),
                Pooling::First => row[range.start] = 1.0,
                Pooling::Last => row[range.end - 1] = 1.0,
            }
        }
        plan.write_f32(EmbeddingInputs::POOL, pool);
    }
}

/// Token ranges of the packed texts.
fn ranges(texts: &[Vec<u32>]) -> Vec<Range<usize>> {
    let mut end = 0;
    let range = |text: &Vec<u32>| {
        end += text.len();
        end - text.len()..end
    };
    texts.iter().map(range).collect()
}

/// Token range each token attends to: its text, up to `reach` tokens on each side.
fn spans(texts: &[Range<usize>], reach: usize, tokens: usize) -> Vec<u32> {
    let span = |text: &Range<usize>, at: usize| {
        let first = at.saturating_sub(reach).max(text.start);
        [first as u32, at.saturating_add(reach).saturating_add(1).min(text.end) as u32]
    };
    let used = texts.iter().flat_map(|text| text.clone().flat_map(move |at| span(text, at)));
    let mut spans: Vec<u32> = used.collect();
    let padding = (spans.len() / 2..tokens).flat_map(|at| [at as u32, at as u32 + 1]);
    spans.extend(padding.collect::<Vec<_>>());
    spans
}

/// Number of leading texts that fit into one pass.
fn batch(texts: &[Vec<u32>]) -> usize {
    let mut tokens = 0;
    let fits = |text: &&Vec<u32>| {
        tokens += text.len();
        tokens <= BATCH_TOKENS
    };
    texts.iter().take(BATCH_TEXTS).take_while(fits).count().max(1)
}

/// Normalises a vector to length 1.
fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let scale = if length > 0.0 { length.recip() } else { 0.0 };
    vector.iter().map(|x| (f64::from(*x) * scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::{batch, spans, unit};

    #[test]
    fn tokens_attend_only_to_their_text() {
        assert_eq!(spans(&[0..2, 2..5], usize::MAX, 6), [0, 2, 0, 2, 2, 5, 2, 5, 2, 5, 5, 6]);
        assert_eq!(spans(&[0..4, 4..5], 1, 5), [0, 2, 0, 3, 1, 4, 2, 4, 4, 5]);
    }

    #[test]
    fn batches_are_limited_by_tokens_and_texts() {
        let texts = |lengths: &[usize]| lengths.iter().map(|n| vec![0; *n]).collect::<Vec<_>>();
        assert_eq!(batch(&texts(&[10, 20, 5000, 3])), 2);
        assert_eq!(batch(&texts(&[5000, 3])), 1);
        assert_eq!(batch(&texts(&[1; 100])), 64);
    }

    #[test]
    fn vectors_are_normalised() {
        assert_eq!(unit(&[3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(unit(&[0.0, 0.0]), [0.0, 0.0]);
    }
}
