//! Model files with a parsed header; the kind of model decides what they are loaded as.

use std::{
    cell::{OnceCell, RefCell},
    ops::ControlFlow,
    rc::Rc,
};

use js_sys::Function;
use rullama_chat::{ChatTemplate, Conversation, Message, ReplyPrefix, Tool};
use rullama_gguf::Gguf;
use rullama_runtime::{
    MediaEncoders, RuntimeError,
    model::{ModelKind, Progress},
    vocabulary::{self, FamilyError, GivenTemplate},
};
use rullama_tokenizer::{Span, Tokenizer};
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    error::Failure,
    metadata,
    model::{Facts, decoded, encoded},
    options::{Load, parse},
    source::{BytesOf, ScriptSource, Thrown},
    template::{self, PageTemplate},
};

/// A model file; loading consumes it.
#[wasm_bindgen]
pub struct Header {
    pub(crate) gguf: Gguf,
    pub(crate) thrown: Thrown,
    pub(crate) source: Rc<ScriptSource>,
    /// Built when it is first needed.
    tokenizer: OnceCell<Tokenizer>,
    /// A chat template that the page runs.
    pub(crate) given: Option<GivenTemplate>,
}

/// A conversation to render.
#[derive(Deserialize)]
struct RenderRequest {
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<Tool>,
    #[serde(default)]
    think: bool,
    prefix: Option<ReplyPrefix>,
}

#[wasm_bindgen]
impl Header {
    /// Reads the header of a file.
    pub async fn open(file: BytesOf) -> Result<Self, JsValue> {
        let (source, thrown) = ScriptSource::new(file);
        let opened = open_model(source.clone()).await;
        let gguf = opened.map_err(|failure| thrown.or(failure))?;
        Ok(Self { gguf, thrown, source, tokenizer: OnceCell::new(), given: None })
    }

    /// The chat template, if another module must run it: JSON `{ source, isOfKnownFamily }`, where `source` is what that module reads.
    #[wasm_bindgen(js_name = templateToRun)]
    pub fn template_to_run(&self) -> Option<String> {
        let chats = ModelKind::of(&self.gguf).chats();
        chats.then(|| template::to_run(&self.gguf)).flatten()
    }

    /// Renders conversations with a template that the page runs.
    #[wasm_bindgen(js_name = giveTemplate)]
    pub fn give_template(&mut self, page: PageTemplate) {
        self.given = template::given(page);
    }

    /// Describes the model. Returns JSON: a description, memory use with and without the per-layer embedding table on the GPU, and
    /// memory use of its encoders.
    pub fn inspect(&self, options: &str) -> Result<String, JsValue> {
        let load: Load = parse(options)?;
        let described = || {
            let facts = Facts::of(self, &load, &load.options())?;
            Ok(facts.inspected(MediaEncoders::memory_of_file(&self.gguf)?).to_string())
        };
        Ok(described().map_err(|error: RuntimeError| Failure::from(error))?)
    }

    /// `decoder`, `embedding`, `diffusion` or `drafter`.
    pub fn kind(&self) -> String {
        ModelKind::of(&self.gguf).name().into()
    }

    /// All metadata keys, as JSON.
    pub fn keys(&self) -> String {
        let keys: Vec<&str> = self.gguf.metadata().iter().map(|entry| entry.key.as_str()).collect();
        json!(keys).to_string()
    }

    /// The value of a metadata key, as JSON.
    pub fn value(&self, key: &str) -> Option<String> {
        self.gguf.get(key).map(|value| value.json())
    }

    /// All tensors, as JSON: `[{ name, type, shape, bytes }]`.
    pub fn tensors(&self) -> String {
        let tensors = self.gguf.tensors().iter().map(metadata::tensor);
        serde_json::Value::from_iter(tensors).to_string()
    }

    /// Encodes text, as `Model.tokenize` does.
    pub fn tokenize(&self, text: &str, special: bool, bos: bool) -> Result<Vec<u32>, JsValue> {
        Ok(encoded(self.tokenizer()?, text, special, bos))
    }

    /// Decodes tokens, including special ones.
    pub fn detokenize(&self, ids: &[u32]) -> Result<String, JsValue> {
        Ok(decoded(self.tokenizer()?, ids))
    }

    /// Renders a conversation `{ messages, tools, think, prefix }` with the chat template; returns `{ text, ids }` as JSON. Images and
    /// audio are one marker each.
    pub fn render(&self, request: &str) -> Result<String, JsValue> {
        let RenderRequest { messages, tools, think, prefix } = parse(request)?;
        let conversation =
            Conversation { messages, tools, thinking: think, prefix, ..Conversation::default() };
        let template = self.template().map_err(Failure::from)?;
        let prompt = template.render(&conversation, true).map_err(Failure::from)?;
        let spans = prompt.spans().iter().map(|span| match span.trusted {
            true => Span::Template(&span.text),
            false => Span::Text(&span.text),
        });
        let spans: Vec<Span<'_>> = spans.collect();
        let ids = self.tokenizer()?.encode_prompt(&spans);
        Ok(json!({ "text": prompt.text(), "ids": ids }).to_string())
    }
}

impl Header {
    /// The chat template: the one that the page runs, or the one that this module reads.
    pub(crate) fn template(&self) -> Result<ChatTemplate, FamilyError> {
        match &self.given {
            Some(given) => Ok(given.clone()?),
            None => vocabulary::template(&self.gguf),
        }
    }

    fn tokenizer(&self) -> Result<&Tokenizer, Failure> {
        if let Some(tokenizer) = self.tokenizer.get() {
            return Ok(tokenizer);
        }
        let tokenizer = vocabulary::tokenizer(&self.gguf)?;
        Ok(self.tokenizer.get_or_init(|| tokenizer))
    }
}

/// Reports loading progress to a script and keeps the error it throws.
pub(crate) struct LoadProgress<'a> {
    progress: &'a Function,
    source: Rc<ScriptSource>,
    thrown: RefCell<Option<JsValue>>,
}

impl<'a> LoadProgress<'a> {
    pub(crate) fn new(progress: &'a Function, source: Rc<ScriptSource>) -> Self {
        Self { progress, source, thrown: RefCell::new(None) }
    }

    /// Reports bytes done, bytes in total and milliseconds spent waiting for them; loading ends if the script returns true.
    pub(crate) fn report(&self, Progress { done, total }: Progress) -> ControlFlow<()> {
        let arguments = [done as f64, total as f64, self.source.waited()].map(JsValue::from);
        match self.progress.call3(&JsValue::NULL, &arguments[0], &arguments[1], &arguments[2]) {
            Ok(stop) if stop.is_truthy() => ControlFlow::Break(()),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                *self.thrown.borrow_mut() = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Why loading failed: the script's error, if it threw one.
    pub(crate) fn failure(&self, error: RuntimeError) -> Failure {
        self.thrown.take().map_or_else(|| error.into(), Failure::Script)
    }
}

/// The architecture of projector files.
const PROJECTOR: &str = "clip";

/// Reads a model's header.
pub(crate) async fn open_model(source: Rc<ScriptSource>) -> Result<Gguf, Failure> {
    let gguf = Gguf::open(source).await?;
    if gguf.str("general.architecture").is_ok_and(|name| name == PROJECTOR) {
        return Err(Failure::Projector);
    }
    Ok(gguf)
}
