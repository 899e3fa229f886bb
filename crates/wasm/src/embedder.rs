//! Embedding models.

use js_sys::Function;
use rullama_runtime::embedder::{EmbedOptions, EmbeddingPrompt, Embeddings};
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    device::Device,
    error::Failure,
    header::{Header, LoadProgress},
    model::Facts,
    options::{Load, parse},
    turns::Turns,
};

/// An embedding model on the GPU.
#[wasm_bindgen]
pub struct Embedder {
    inner: rullama_runtime::Embedder,
    facts: Facts,
    turns: Turns,
}

/// Texts, or their tokens.
#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    texts: Vec<String>,
    ids: Option<Vec<Vec<u32>>>,
    purpose: Option<String>,
    dimensions: Option<usize>,
}

/// Embeddings of texts, concatenated.
#[wasm_bindgen]
pub struct Vectors {
    values: Vec<f32>,
    /// Number of texts.
    pub count: usize,
    /// Tokens of all texts.
    pub tokens: usize,
    /// Number of truncated texts.
    pub cut: usize,
}

#[wasm_bindgen]
impl Vectors {
    /// Takes the values out.
    #[wasm_bindgen(js_name = takeValues)]
    pub fn take_values(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.values)
    }
}

#[wasm_bindgen]
impl Embedder {
    /// Loads a model onto a device, as `Model.load` does.
    pub async fn load(
        header: Header,
        device: &Device,
        options: String,
        progress: Function,
    ) -> Result<Self, JsValue> {
        let thrown = header.thrown.clone();
        let load = async {
            let load: Load = Load::of(&options, device)?;
            let facts = Facts::of(&header, &load, &load.options())?;
            facts.check_budget(&load.options())?;
            let Header { gguf, source, .. } = header;
            let reporter = LoadProgress::new(&progress, source);
            let executor = device.executor.clone();
            let loaded = rullama_runtime::Embedder::load(&gguf, executor, &mut |progress| {
                reporter.report(progress)
            })
            .await;
            let inner = loaded.map_err(|error| reporter.failure(error))?;
            Ok(Self { inner, facts, turns: device.turns.clone() })
        };
        Ok(load.await.map_err(|failure: Failure| thrown.or(failure))?)
    }

    /// Description and memory use, as JSON.
    pub fn info(&self) -> String {
        let config = self.inner.config();
        let mut info = self.facts.loaded(config.context, self.inner.device().name(), false);
        info["dimensions"] = json!(config.out);
        info.to_string()
    }

    /// Embeddings of `{ texts | ids, purpose, dimensions }`, each of unit length.
    pub async fn embed(&self, request: String) -> Result<Vectors, JsValue> {
        Ok(self.vectors(&request).await?)
    }

    /// The tokens of a text, including the beginning and end tokens the model gets.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>, JsValue> {
        Ok(self.inner.tokens(text).map_err(Failure::from)?.0)
    }

    /// Bytes of weights on the GPU.
    #[wasm_bindgen(js_name = gpuBytes)]
    pub fn gpu_bytes(&self) -> f64 {
        self.inner.gpu_bytes() as f64
    }
}

impl Embedder {
    async fn vectors(&self, request: &str) -> Result<Vectors, Failure> {
        let Request { texts, ids, purpose, dimensions } = parse(request)?;
        let prompt = match &purpose {
            None => EmbeddingPrompt::None,
            Some(name) => EmbeddingPrompt::named(name).ok_or(Failure::Purpose(name.clone()))?,
        };
        let mut all = Embeddings { vectors: Vec::new(), tokens: 0, cut: 0 };
        let mut add = |made: Embeddings| {
            all.vectors.extend(made.vectors);
            all.tokens += made.tokens;
            all.cut += made.cut;
        };
        match ids {
            Some(ids) => {
                for ids in ids.chunks(self.together(ids.len())) {
                    let vectors = self.inner.embed_tokens(ids, dimensions).await?;
                    add(Embeddings { vectors, tokens: ids.iter().map(Vec::len).sum(), cut: 0 });
                    self.turns.give().await;
                }
            }
            None => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                for texts in texts.chunks(self.together(texts.len())) {
                    add(self.inner.embed(texts, EmbedOptions { prompt, dimensions }).await?);
                    self.turns.give().await;
                }
            }
        }
        let Embeddings { vectors, tokens, cut } = all;
        Ok(Vectors { count: vectors.len(), values: vectors.concat(), tokens, cut })
    }

    /// How many texts are given to the model at once: on the CPU one, so that others get their turn after each.
    fn together(&self, texts: usize) -> usize {
        if self.turns.are_needed() { 1 } else { texts.max(1) }
    }
}
