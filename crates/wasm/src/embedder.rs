//! Models that turn texts into vectors.

use js_sys::Function;
use rullama_engine::executor;
use rullama_runtime::embedder::{EmbedOptions, EmbeddingPrompt, Embeddings};
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    device::Device,
    error::Failure,
    header::{Header, Telling},
    model::Facts,
    options::{Load, parse},
};

/// An encoder of texts on the GPU.
#[wasm_bindgen]
pub struct Embedder {
    inner: rullama_runtime::Embedder,
    facts: Facts,
}

/// Texts, or tokens in their place.
#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    texts: Vec<String>,
    ids: Option<Vec<Vec<u32>>>,
    purpose: Option<String>,
    dimensions: Option<usize>,
}

/// Vectors of texts, one after the other.
#[wasm_bindgen]
pub struct Vectors {
    values: Vec<f32>,
    /// How many texts.
    pub count: usize,
    /// Tokens of all texts.
    pub tokens: usize,
    /// Texts that were cut.
    pub cut: usize,
}

#[wasm_bindgen]
impl Vectors {
    /// The numbers; there are none left here then.
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
        let Header { gguf, thrown, source } = header;
        let load = async {
            let load: Load = parse(&options)?;
            let facts = Facts::of(&gguf, &load, &load.options())?;
            facts.check_budget(&load.options())?;
            let telling = Telling::new(&progress, source);
            let gpu = executor::Device::Gpu(device.gpu.clone());
            let loaded =
                rullama_runtime::Embedder::load(&gguf, gpu, &mut |told| telling.tell(told)).await;
            let inner = loaded.map_err(|error| telling.failure(error))?;
            Ok(Self { inner, facts })
        };
        Ok(load.await.map_err(|failure: Failure| thrown.or(failure))?)
    }

    /// What it is and takes, as JSON.
    pub fn info(&self) -> String {
        let config = self.inner.config();
        let mut info = self.facts.loaded(config.context, self.inner.device().name(), false);
        info["dimensions"] = json!(config.out);
        info.to_string()
    }

    /// Vectors of `{ texts | ids, purpose, dimensions }`, each of length one.
    pub async fn embed(&self, request: String) -> Result<Vectors, JsValue> {
        Ok(self.vectors(&request).await?)
    }

    /// The tokens of a text as the model reads it, its ends included.
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
        let Embeddings { vectors, tokens, cut } = match ids {
            Some(ids) => {
                let vectors = self.inner.embed_tokens(&ids, dimensions).await?;
                Embeddings { vectors, tokens: ids.iter().map(Vec::len).sum(), cut: 0 }
            }
            None => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                self.inner.embed(&texts, EmbedOptions { prompt, dimensions }).await?
            }
        };
        Ok(Vectors { count: vectors.len(), values: vectors.concat(), tokens, cut })
    }
}
