//! Models: looked at, loaded, asked for text and tokens.

use std::{cell::Cell, ops::ControlFlow};

use js_sys::Function;
use rullama_engine::executor;
use rullama_gguf::Gguf;
use rullama_runtime::{
    RuntimeError,
    model::{CacheType, LoadOptions, MemoryUse, Progress, Summary},
    options::SamplingOptions,
    picture::{Budget, Picture},
    senses::Medium,
    session::DEFAULT_CONTEXT,
    sound::Sound,
    vision::Sight,
};
use rullama_tokenizer::{Render, Special};
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    adapters::Library,
    device::Device,
    error::Failure,
    options::{Conversing, Load, parse},
    senses::Memory,
    session::Session,
    source::{BytesOf, ScriptSource, Thrown},
};

/// A model on the GPU.
#[wasm_bindgen]
pub struct Model {
    pub(crate) inner: rullama_runtime::Model,
    facts: Facts,
    context: usize,
    cache: CacheType,
    thrown: Thrown,
    memory: Memory,
    pub(crate) adapters: Library,
}

/// What a header and the model's name say.
struct Facts {
    summary: Summary,
    memory: MemoryUse,
    defaults: SamplingOptions,
}

impl Facts {
    fn of(gguf: &Gguf, load: &Load, options: &LoadOptions) -> Result<Self, RuntimeError> {
        let summary = Summary::of(gguf)?;
        let mut defaults = summary.sampling.clone();
        defaults.apply(&Value::Object(load.parameters.clone()))?;
        Ok(Self { memory: MemoryUse::of_file(gguf, options)?, summary, defaults })
    }

    fn json(&self) -> Value {
        let Summary { title, architecture, parameters, quantization, .. } = &self.summary;
        json!({
            "title": title,
            "architecture": architecture,
            "parameters": parameters,
            "quantization": quantization,
            "fileBytes": self.summary.file_bytes,
            "layers": self.summary.layers,
            "vocabulary": self.summary.vocabulary,
            "trainedContext": self.summary.trained_context,
            "thinking": self.summary.thinking,
            "defaults": sampling(&self.defaults),
        })
    }

    fn memory(&self, table: bool) -> Value {
        let MemoryUse { weights, caches, work, .. } = self.memory;
        json!({
            "weights": weights + if table { self.memory.table } else { 0 },
            "caches": caches,
            "work": work,
            "gpu": self.memory.gpu(table),
            "tableOnGpu": table,
        })
    }
}

/// Options in the client's words.
fn sampling(options: &SamplingOptions) -> Value {
    let given = |number: i64| (number >= 0).then_some(number);
    json!({
        "temperature": options.temperature,
        "topK": options.top_k,
        "topP": options.top_p,
        "minP": options.min_p,
        "typicalP": options.typical_p,
        "repeatPenalty": options.repeat_penalty,
        "repeatLastN": options.repeat_last_n,
        "presencePenalty": options.presence_penalty,
        "frequencyPenalty": options.frequency_penalty,
        "seed": given(options.seed),
        "maxTokens": given(options.num_predict.into()),
        "stop": options.stop,
    })
}

/// Reads a model's header: what it is and what it takes, with and without the table of per-layer inputs, as JSON.
#[wasm_bindgen]
pub async fn inspect(file: BytesOf, options: String) -> Result<String, JsValue> {
    let (source, thrown) = ScriptSource::new(file);
    let look = async {
        let load: Load = parse(&options)?;
        let gguf = Gguf::open(source).await?;
        let facts = Facts::of(&gguf, &load, &load.options())?;
        let memory =
            json!({ "withTable": facts.memory(true), "withoutTable": facts.memory(false) });
        Ok(json!({ "info": facts.json(), "memory": memory }).to_string())
    };
    Ok(look.await.map_err(|failure| thrown.or(failure))?)
}

#[wasm_bindgen]
impl Model {
    /// Loads a model onto a device; `progress` is called with bytes done and bytes in all, and ends it by a true answer.
    pub async fn load(
        file: BytesOf,
        device: &Device,
        options: String,
        progress: Function,
    ) -> Result<Self, JsValue> {
        let (source, thrown) = ScriptSource::new(file);
        let load = async {
            let load: Load = parse(&options)?;
            let gguf = Gguf::open(source).await?;
            let mut options = load.options();
            let trained = Summary::of(&gguf)?.trained_context;
            let named = load.parameters.get("num_ctx").and_then(Value::as_u64);
            let named = named.and_then(|n| usize::try_from(n).ok()).map(|n| n.min(trained));
            let context = options.context.or(named).unwrap_or(DEFAULT_CONTEXT.min(trained));
            options.context = Some(context);
            let facts = Facts::of(&gguf, &load, &options)?;
            let threw = Cell::new(None);
            let mut each = |Progress { done, total }| match progress.call2(
                &JsValue::NULL,
                &(done as f64).into(),
                &(total as f64).into(),
            ) {
                Ok(stop) if stop.is_truthy() => ControlFlow::Break(()),
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => {
                    threw.set(Some(error));
                    ControlFlow::Break(())
                }
            };
            let gpu = executor::Device::Gpu(device.gpu.clone());
            let loaded = rullama_runtime::Model::load(gguf, gpu, &options, &mut each).await;
            let inner = loaded.map_err(|error| {
                threw.take().map_or_else(|| Failure::from(error), Failure::Script)
            })?;
            let memory = Memory::new(&inner);
            let (cache, thrown) = (options.cache, thrown.clone());
            let adapters = Library::default();
            Ok(Self { inner, facts, context, cache, thrown, memory, adapters })
        };
        Ok(load.await.map_err(|failure: Failure| thrown.or(failure))?)
    }

    /// What it is and takes, as JSON.
    pub fn info(&self) -> String {
        let mut info = self.facts.json();
        info["context"] = json!(self.context);
        info["memory"] = self.facts.memory(self.inner.table_on_gpu());
        info["device"] = json!(self.inner.device().name());
        info.to_string()
    }

    /// A new conversation: `{ context, cache }`.
    pub fn session(&self, options: &str) -> Result<Session, JsValue> {
        let wishes: Conversing = parse(options)?;
        let options = wishes.options(self.context, self.cache);
        let session = self.inner.session(&options).map_err(Failure::from)?;
        let remembered = (self.thrown.clone(), self.memory.clone(), self.adapters.clone());
        Ok(Session::new(session, self.facts.defaults.clone(), remembered))
    }

    /// Looks at a picture of straight RGBA pixels with at most `tokens` soft tokens (70, 140, 280, 560 or 1120). The number that
    /// comes back stands for it in requests.
    pub async fn see(
        &self,
        width: u32,
        height: u32,
        rgba: Vec<u8>,
        tokens: u32,
    ) -> Result<u32, JsValue> {
        let medium = Budget::try_from(tokens)
            .and_then(|budget| Ok((Picture::from_rgba(width, height, &rgba)?, Sight::Fill(budget))))
            .map(|(picture, sight)| Medium::Picture(picture, sight));
        drop(rgba);
        self.perceive(medium.map_err(Into::into)).await
    }

    /// Listens to samples of so many channels, one after the other, as `see` looks.
    pub async fn hear(
        &self,
        samples: Vec<f32>,
        channels: usize,
        rate: u32,
    ) -> Result<u32, JsValue> {
        let medium = Sound::new(&samples, channels, rate).map(Medium::Sound);
        drop(samples);
        self.perceive(medium.map_err(Into::into)).await
    }

    /// Forgets what a number stands for.
    pub fn forget(&self, number: u32) {
        self.memory.forget(number);
    }

    /// Text as tokens; `special` recognises written markers, `bos` puts the beginning in front.
    pub fn tokenize(&self, text: &str, special: bool, bos: bool) -> Result<Vec<u32>, JsValue> {
        let tokenizer = self.inner.tokenizer().map_err(Failure::from)?;
        let mut ids = tokenizer.encode(text, if special { Special::Parse } else { Special::None });
        if bos {
            ids.splice(0..0, tokenizer.bos());
        }
        Ok(ids)
    }

    /// Tokens as text, special ones included.
    pub fn detokenize(&self, ids: &[u32]) -> Result<String, JsValue> {
        let tokenizer = self.inner.tokenizer().map_err(Failure::from)?;
        Ok(tokenizer.decode(ids, Render::All))
    }

    /// Bytes of weights on the GPU, those of towers and adapters included.
    #[wasm_bindgen(js_name = gpuBytes)]
    pub fn gpu_bytes(&self) -> f64 {
        (self.inner.gpu_bytes() + self.memory.gpu_bytes() + self.adapters.gpu_bytes()) as f64
    }
}

impl Model {
    async fn perceive(&self, medium: Result<Medium, RuntimeError>) -> Result<u32, JsValue> {
        let perceived = self.memory.perceive(medium).await;
        Ok(perceived.map_err(|failure| self.thrown.or(failure))?)
    }
}
