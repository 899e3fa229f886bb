//! Diffusion models.

use std::{cell::RefCell, ops::ControlFlow};

use js_sys::Function;
use rullama_chat::{Conversation, Message};
use rullama_engine::executor;
use rullama_runtime::{
    denoise::{DEFAULT_BLOCKS, Denoised, WriteOptions, Writing},
    generate::{ChatOptions, Prompt},
    model::CacheType,
    options::SamplingOptions,
};
use rullama_tokenizer::{Render, Tokenizer};
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    device::Device,
    error::Failure,
    events::{self, Times},
    header::{Header, LoadProgress},
    model::{Facts, decoded, encoded},
    options::{Load, SessionRequest, parse},
    reply::Script,
    session::{now, seeded},
    source::Thrown,
};

/// A diffusion model on the GPU.
#[wasm_bindgen]
pub struct Denoiser {
    inner: rullama_runtime::Denoiser,
    facts: Facts,
    context: usize,
    cache: CacheType,
    thrown: Thrown,
}

#[wasm_bindgen]
impl Denoiser {
    /// Loads a model onto a device, as `Model.load` does.
    pub async fn load(
        header: Header,
        device: &Device,
        options: String,
        progress: Function,
    ) -> Result<Self, JsValue> {
        let thrown = header.thrown.clone();
        let load = async {
            let gpu = device.gpu("a model that denoises whole blocks")?.clone();
            let load: Load = parse(&options)?;
            let mut options = load.options();
            let context = load.context_of(&header.gguf)?;
            options.context = Some(context);
            let facts = Facts::of(&header, &load, &options)?;
            facts.check_budget(&options)?;
            let Header { gguf, source, given, .. } = header;
            let reporter = LoadProgress::new(&progress, source);
            let gpu = executor::Device::Gpu(gpu);
            let loaded = rullama_runtime::Denoiser::load(gguf, gpu, &mut |progress| {
                reporter.report(progress)
            })
            .await;
            let inner = loaded.map_err(|error| reporter.failure(error))?;
            if let Some(template) = given {
                inner.give_template(template);
            }
            Ok(Self { inner, facts, context, cache: options.cache, thrown: thrown.clone() })
        };
        Ok(load.await.map_err(|failure: Failure| thrown.or(failure))?)
    }

    /// Description and memory use, as JSON.
    pub fn info(&self) -> String {
        let mut info = self.facts.loaded(self.context, self.inner.device().name(), false);
        let defaults = self.inner.config().defaults;
        info["canvas"] = json!(self.inner.config().canvas);
        info["defaults"]["steps"] = json!(defaults.steps);
        info["defaults"]["entropyBound"] = json!(defaults.entropy_bound);
        info["defaults"]["blocks"] = json!(DEFAULT_BLOCKS);
        info.to_string()
    }

    /// A new session with options `{ context, cache }`.
    pub fn session(&self, options: &str) -> Result<Denoising, JsValue> {
        let request: SessionRequest = parse(options)?;
        let options = request.options(self.context, self.cache, false);
        let session = self.inner.session(options.context, options.cache).map_err(Failure::from)?;
        Ok(Denoising {
            inner: RefCell::new(Some(session)),
            model: self.inner.clone(),
            defaults: self.facts.defaults.clone(),
            thrown: self.thrown.clone(),
        })
    }

    /// Encodes text, as `Model.tokenize` does.
    pub fn tokenize(&self, text: &str, special: bool, bos: bool) -> Result<Vec<u32>, JsValue> {
        let tokenizer = self.inner.tokenizer().map_err(Failure::from)?;
        Ok(encoded(tokenizer, text, special, bos))
    }

    /// Decodes tokens, including special ones.
    pub fn detokenize(&self, ids: &[u32]) -> Result<String, JsValue> {
        Ok(decoded(self.inner.tokenizer().map_err(Failure::from)?, ids))
    }

    /// Bytes of weights on the GPU.
    #[wasm_bindgen(js_name = gpuBytes)]
    pub fn gpu_bytes(&self) -> f64 {
        self.inner.gpu_bytes() as f64
    }
}

/// A session of a diffusion model: every reply processes the whole conversation.
#[wasm_bindgen]
pub struct Denoising {
    /// `None` while a call uses it; the client queues calls.
    inner: RefCell<Option<rullama_runtime::denoise::Denoising>>,
    model: rullama_runtime::Denoiser,
    defaults: SamplingOptions,
    thrown: Thrown,
}

/// A request to generate. One of `messages`, `text` and `ids` is given.
#[derive(Deserialize)]
struct Request {
    messages: Option<Vec<Message>>,
    #[serde(default)]
    think: bool,
    text: Option<String>,
    ids: Option<Vec<u32>>,
    /// Options under Ollama's names; only `seed`, `num_predict` and `stop` are used.
    #[serde(default)]
    options: Value,
    #[serde(default)]
    denoising: DenoiseRequest,
}

/// How blocks are denoised; missing fields have the file's values.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct DenoiseRequest {
    steps: Option<usize>,
    entropy_bound: Option<f32>,
    blocks: Option<usize>,
    /// Whether the canvas is reported after each step.
    #[serde(default)]
    canvas: bool,
}

impl Request {
    fn prompt(&mut self, model: &rullama_runtime::Denoiser) -> Result<Prompt, Failure> {
        if let Some(text) = &self.text {
            return Ok(model.plain_prompt(text)?);
        }
        if let Some(ids) = self.ids.take() {
            return Ok(Prompt::tokens(ids));
        }
        let messages = self.messages.take().unwrap_or_default();
        let conversation =
            Conversation { messages, thinking: self.think, ..Conversation::default() };
        Ok(model.prompt(&conversation, ChatOptions::default())?)
    }

    fn options(
        &self,
        model: &rullama_runtime::Denoiser,
        (sampling, seed): (SamplingOptions, u32),
    ) -> WriteOptions {
        let mut denoise = model.options(seed.into());
        denoise.watch = self.denoising.canvas;
        denoise.schedule.steps = self.denoising.steps.unwrap_or(denoise.schedule.steps).max(1);
        let bound = self.denoising.entropy_bound;
        denoise.schedule.entropy_bound = bound.unwrap_or(denoise.schedule.entropy_bound);
        let tokens = usize::try_from(sampling.num_predict).ok();
        let blocks = self.denoising.blocks.unwrap_or(DEFAULT_BLOCKS);
        WriteOptions { denoise, blocks, tokens, stops: sampling.stop }
    }
}

#[wasm_bindgen]
impl Denoising {
    /// Generates a reply, as `Session.generate` does, with `canvas` events if requested.
    pub async fn generate(&self, request: String, each: Function) -> Result<(), JsValue> {
        let mut session = self.inner.borrow_mut().take().ok_or(Failure::Busy)?;
        let outcome = self.run(&mut session, &request, &each).await;
        *self.inner.borrow_mut() = Some(session);
        Ok(outcome.map_err(|failure| self.thrown.or(failure))?)
    }

    /// Bytes of caches and activations on the GPU; 0 while it generates.
    #[wasm_bindgen(js_name = gpuBytes)]
    pub fn gpu_bytes(&self) -> f64 {
        self.inner.borrow().as_ref().map_or(0, |session| session.gpu_bytes()) as f64
    }
}

impl Denoising {
    async fn run(
        &self,
        session: &mut rullama_runtime::denoise::Denoising,
        request: &str,
        each: &Function,
    ) -> Result<(), Failure> {
        let start = now();
        let mut request: Request = parse(request)?;
        let (sampling, seed) = seeded(&self.defaults, &request.options)?;
        let prompt = request.prompt(&self.model)?;
        let options = request.options(&self.model, (sampling, seed));
        let (steps, total) = (options.denoise.schedule.steps, prompt.tokens.len());
        let context = session.context();
        let tokenizer = self.model.tokenizer()?;
        let mut script = Script::new(each.clone());
        let mut times = Times { start, first: None, end: start };
        let mut writing = Writing::begin(session, &self.model, &prompt, options).await?;
        script.emit(&json!({ "type": "prefill", "done": total, "total": total }));
        loop {
            let block = writing.written().blocks;
            let mut on_step = |step: &Denoised| {
                times.first.get_or_insert_with(now);
                let stop = script.emit(&step_event(step, (block, steps), tokenizer));
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            writing.block(&mut on_step).await?;
            times.end = now();
            while let Some(event) = writing.ready() {
                match events::event(event, tokenizer) {
                    Ok(event) => {
                        script.emit(&event);
                    }
                    Err(done) => {
                        let written = writing.written();
                        let used = total + done.answer_tokens;
                        let mut event = events::done(&done, times, seed, (used, context));
                        event["usage"]["blocks"] = json!(written.blocks);
                        event["usage"]["steps"] = json!(written.steps);
                        script.emit(&event);
                        return script.outcome();
                    }
                }
            }
        }
    }
}

/// A denoising step as JSON, with the canvas up to the end of the text if it was requested.
fn step_event(step: &Denoised, (block, steps): (usize, usize), tokenizer: &Tokenizer) -> Value {
    let mut event = json!({
        "type": "step",
        "block": block,
        "step": step.step,
        "steps": steps,
        "entropy": step.entropy,
        "accepted": step.accepted,
    });
    if !step.tokens.is_empty() {
        let mut stream = tokenizer.stream(Render::Plain);
        let canvas = step.tokens.iter().zip(&step.kept);
        let tokens = canvas
            .take_while(|(id, _)| !tokenizer.is_end(**id))
            .map(|(id, kept)| json!({ "text": stream.push(*id), "settled": kept }));
        event["type"] = json!("canvas");
        event["tokens"] = tokens.collect();
    }
    event
}
