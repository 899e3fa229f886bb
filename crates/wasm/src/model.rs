//! Models: inspecting and loading them, text and tokens.

use std::cell::RefCell;

use js_sys::Function;
use rullama_chat::{Capability, Output};
use rullama_engine::executor;
use rullama_gguf::Gguf;
use rullama_runtime::{
    MediaEncoders, RuntimeError,
    audio::Audio,
    generate::token_texts,
    image::{Budget, Image},
    media::ImageSize,
    media::{EncodedMedia, Medium},
    model::{CacheType, LoadOptions, MemoryUse, ModelKind, Summary},
    options::SamplingOptions,
    session::DraftOptions,
};
use rullama_tokenizer::{Render, Special, Tokenizer};
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    adapters::Library,
    batch::Batch,
    device::Device,
    error::Failure,
    header::{Header, LoadProgress},
    media::MediaCache,
    options::{Load, SessionRequest, parse},
    session::{Session, SessionContext},
    source::{BytesOf, ScriptSource, Thrown},
    turns::Turns,
};

/// A model on the GPU or the CPU.
#[wasm_bindgen]
pub struct Model {
    pub(crate) inner: rullama_runtime::Model,
    /// Speculative decoding of new sessions.
    pub(crate) drafts: RefCell<Option<DraftOptions>>,
    facts: Facts,
    context: usize,
    cache: CacheType,
    thrown: Thrown,
    memory: MediaCache,
    pub(crate) adapters: Library,
    batch: Batch,
    turns: Turns,
}

/// Description of a model from its header and the parameters of its name.
pub(crate) struct Facts {
    summary: Summary,
    memory: MemoryUse,
    pub(crate) defaults: SamplingOptions,
}

impl Facts {
    pub(crate) fn of(
        header: &Header,
        load: &Load,
        options: &LoadOptions,
    ) -> Result<Self, RuntimeError> {
        let gguf = &header.gguf;
        let summary = Summary::with_template(gguf, header.template().ok().as_ref())?;
        let mut defaults = summary.sampling.clone();
        defaults.apply(&Value::Object(load.parameters.clone()))?;
        Ok(Self { memory: MemoryUse::of_file(gguf, options)?, summary, defaults })
    }

    fn json(&self) -> Value {
        let Summary { title, architecture, parameters, quantization, .. } = &self.summary;
        json!({
            "kind": self.summary.kind.name(),
            "title": title,
            "architecture": architecture,
            "parameters": parameters,
            "quantization": quantization,
            "fileBytes": self.summary.file_bytes,
            "layers": self.summary.layers,
            "vocabulary": self.summary.vocabulary,
            "trainedContext": self.summary.trained_context,
            "thinking": self.summary.thinking,
            "capabilities": self.summary.capabilities.iter().map(|can| can.name()).collect::<Vec<_>>(),
            "defaults": sampling(&self.defaults),
        })
    }

    /// The description of a file, with the bytes of its encoders.
    pub(crate) fn inspected(&self, encoders: u64) -> Value {
        let memory = json!({ "withTable": self.memory(true), "withoutTable": self.memory(false) });
        json!({ "info": self.json(), "memory": memory, "encoders": encoders })
    }

    /// The description of a model loaded with this context.
    pub(crate) fn loaded(&self, context: usize, device: &str, table: bool) -> Value {
        let mut info = self.json();
        info["context"] = json!(context);
        info["memory"] = self.memory(table);
        info["device"] = json!(device);
        info
    }

    /// Refuses a model that exceeds the memory budget, before its weights are read.
    pub(crate) fn check_budget(&self, options: &LoadOptions) -> Result<(), RuntimeError> {
        self.memory.check_budget(options)
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

/// Options under the client's names.
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

/// Reads the header of a projector or drafter file; returns the bytes it takes on a GPU.
#[wasm_bindgen(js_name = companionBytes)]
pub async fn companion_bytes(file: BytesOf) -> Result<f64, JsValue> {
    let (source, thrown) = ScriptSource::new(file);
    let inspect = async {
        let gguf = Gguf::open(source).await?;
        let bytes = match ModelKind::of(&gguf) {
            ModelKind::Drafter => MemoryUse::of_file(&gguf, &LoadOptions::default())?.gpu(false),
            _ => MediaEncoders::memory_of_file(&gguf)?,
        };
        Ok(bytes as f64)
    };
    Ok(inspect.await.map_err(|failure: Failure| thrown.or(failure))?)
}

#[wasm_bindgen]
impl Model {
    /// Loads a model onto a device. `progress` is called with bytes done, bytes in total and milliseconds spent waiting for
    /// them; loading ends if it returns true.
    pub async fn load(
        header: Header,
        device: &Device,
        options: String,
        progress: Function,
    ) -> Result<Self, JsValue> {
        let thrown = header.thrown.clone();
        let load = async {
            let load = Load::of(&options, device)?;
            let mut options = load.options();
            let context = load.context_of(&header.gguf)?;
            options.context = Some(context);
            let facts = Facts::of(&header, &load, &options)?;
            let Header { gguf, source, given, .. } = header;
            let reporter = LoadProgress::new(&progress, source);
            let executor = device.executor.clone();
            let mut each = |progress| reporter.report(progress);
            let loaded = rullama_runtime::Model::load(gguf, executor, &options, &mut each).await;
            let inner = loaded.map_err(|error| reporter.failure(error))?;
            if let Some(template) = given {
                inner.give_template(template);
            }
            let memory = MediaCache::new(&inner);
            let (cache, thrown) = (options.cache, thrown.clone());
            let (adapters, drafts) = (Library::default(), RefCell::default());
            let turns = device.turns.clone();
            let batch = Batch::new(turns.clone());
            Ok(Self {
                inner,
                drafts,
                facts,
                context,
                cache,
                thrown,
                memory,
                adapters,
                batch,
                turns,
            })
        };
        Ok(load.await.map_err(|failure: Failure| thrown.or(failure))?)
    }

    /// Description and memory use, as JSON.
    pub fn info(&self) -> String {
        let device = self.inner.device().name();
        let mut info = self.facts.loaded(self.context, device, self.inner.table_on_gpu());
        if let (Some(capabilities), Err(_)) =
            (info["capabilities"].as_array_mut(), self.check_trains())
        {
            capabilities.retain(|can| can != Capability::Training.name());
        }
        info.to_string()
    }

    /// A new session with options `{ context, cache }`.
    pub fn session(&self, options: &str) -> Result<Session, JsValue> {
        let request: SessionRequest = parse(options)?;
        let options = request.options(self.context, self.cache, self.turns.are_needed());
        let mut session = self.inner.session(&options).map_err(Failure::from)?;
        let drafts = self.drafts.borrow().clone();
        session.draft(drafts.clone()).map_err(Failure::from)?;
        let shared = SessionContext {
            thrown: self.thrown.clone(),
            memory: self.memory.clone(),
            drafts,
            adapters: self.adapters.clone(),
            batch: self.batch.clone(),
            turns: self.turns.clone(),
        };
        Ok(Session::new(session, self.facts.defaults.clone(), shared))
    }

    /// Encodes an image of RGBA pixels (not premultiplied) with at most `tokens` soft tokens (70, 140, 280, 560 or 1120).
    /// Returns a number that refers to it in requests.
    #[wasm_bindgen(js_name = encodeImage)]
    pub async fn encode_image(
        &self,
        width: u32,
        height: u32,
        rgba: Vec<u8>,
        tokens: u32,
    ) -> Result<u32, JsValue> {
        let medium = Budget::try_from(tokens)
            .and_then(|budget| {
                Ok((Image::from_rgba(width, height, rgba)?, ImageSize::Fill(budget)))
            })
            .map(|(image, sight)| Medium::Image(image, sight));
        self.encode(medium.map_err(Into::into)).await
    }

    /// Encodes interleaved audio samples; returns a number as `encodeImage` does.
    #[wasm_bindgen(js_name = encodeAudio)]
    pub async fn encode_audio(
        &self,
        samples: Vec<f32>,
        channels: usize,
        rate: u32,
    ) -> Result<u32, JsValue> {
        let medium = Audio::new(&samples, channels, rate).map(Medium::Audio);
        drop(samples);
        self.encode(medium.map_err(Into::into)).await
    }

    /// A video of encoded images, each shown from the given second on; returns one number for all.
    #[wasm_bindgen(js_name = joinVideo)]
    pub fn join_video(&self, images: &[u32], seconds: &[f64]) -> Result<u32, JsValue> {
        Ok(self.memory.join_video(images, seconds)?)
    }

    /// Uses the encoders of a projector file; they take precedence over the model's own.
    pub fn attach(&self, projector: BytesOf) {
        self.memory.attach(&self.inner, ScriptSource::with(projector, self.thrown.clone()));
    }

    /// Unloads the encoders; they are loaded again when needed.
    #[wasm_bindgen(js_name = freeEncoders)]
    pub fn free_encoders(&self) {
        self.memory.free_encoders();
    }

    /// Number of soft tokens of an encoded medium.
    #[wasm_bindgen(js_name = softTokens)]
    pub fn soft_tokens(&self, number: u32) -> Result<usize, JsValue> {
        Ok(self.memory.get(&[number])?.iter().map(EncodedMedia::tokens).sum())
    }

    /// Drops an encoded medium.
    pub fn forget(&self, number: u32) {
        self.memory.forget(number);
    }

    /// Encodes text; `special` recognises special tokens in it, `bos` prepends the beginning-of-sequence token.
    pub fn tokenize(&self, text: &str, special: bool, bos: bool) -> Result<Vec<u32>, JsValue> {
        Ok(encoded(self.inner.tokenizer().map_err(Failure::from)?, text, special, bos))
    }

    /// Decodes tokens, including special ones.
    pub fn detokenize(&self, ids: &[u32]) -> Result<String, JsValue> {
        Ok(decoded(self.inner.tokenizer().map_err(Failure::from)?, ids))
    }

    /// The bytes of all tokens, for the module that computes constraints: counts of tokens and end tokens, end tokens, lengths, texts.
    /// Numbers are little-endian `u32`s.
    pub fn vocabulary(&self) -> Result<Vec<u8>, JsValue> {
        let tokenizer = self.inner.tokenizer().map_err(Failure::from)?;
        let (texts, ends) = token_texts(tokenizer, self.output());
        let counts = [texts.len() as u32, ends.len() as u32];
        let lengths = texts.iter().map(|text| text.len() as u32);
        let numbers = counts.into_iter().chain(ends).chain(lengths);
        let mut packed: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        packed.extend(texts.iter().flatten());
        Ok(packed)
    }

    /// How the model writes thoughts and calls.
    #[wasm_bindgen(js_name = outputFormat)]
    pub fn output_format(&self) -> String {
        self.output().name().into()
    }

    /// Bytes of weights on the GPU, including encoders and adapters.
    #[wasm_bindgen(js_name = gpuBytes)]
    pub fn gpu_bytes(&self) -> f64 {
        (self.inner.gpu_bytes() + self.memory.gpu_bytes() + self.adapters.gpu_bytes()) as f64
    }
}

/// Encodes text.
pub(crate) fn encoded(tokenizer: &Tokenizer, text: &str, special: bool, bos: bool) -> Vec<u32> {
    let mut ids = tokenizer.encode(text, if special { Special::Parse } else { Special::None });
    if bos {
        ids.splice(0..0, tokenizer.begin());
    }
    ids
}

/// Decodes tokens, including special ones.
pub(crate) fn decoded(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    tokenizer.decode(ids, Render::All)
}

impl Model {
    /// Training takes a GPU.
    pub(crate) fn check_trains(&self) -> Result<(), Failure> {
        match self.inner.device() {
            executor::Device::Gpu(_) => Ok(()),
            executor::Device::Cpu => Err(Failure::NeedsGpu("training")),
        }
    }

    fn output(&self) -> Output {
        self.inner.template().map(|template| template.output()).unwrap_or_default()
    }

    async fn encode(&self, medium: Result<Medium, RuntimeError>) -> Result<u32, JsValue> {
        let encoded = self.memory.encode(medium).await;
        Ok(encoded.map_err(|failure| self.thrown.or(failure))?)
    }
}
