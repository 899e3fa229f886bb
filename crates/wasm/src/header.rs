//! Model files with a parsed header; the kind of model decides what they are loaded as.

use std::{cell::RefCell, ops::ControlFlow, rc::Rc};

use js_sys::Function;
use rullama_gguf::Gguf;
use rullama_runtime::{
    RuntimeError,
    model::{ModelKind, Progress},
};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    error::Failure,
    source::{BytesOf, ScriptSource, Thrown},
};

/// A model file; loading consumes it.
#[wasm_bindgen]
pub struct Header {
    pub(crate) gguf: Gguf,
    pub(crate) thrown: Thrown,
    pub(crate) source: Rc<ScriptSource>,
}

#[wasm_bindgen]
impl Header {
    /// Reads the header of a file.
    pub async fn open(file: BytesOf) -> Result<Self, JsValue> {
        let (source, thrown) = ScriptSource::new(file);
        let opened = open_model(source.clone()).await;
        let gguf = opened.map_err(|failure| thrown.or(failure))?;
        Ok(Self { gguf, thrown, source })
    }

    /// `decoder`, `embedding`, `diffusion` or `drafter`.
    pub fn kind(&self) -> String {
        ModelKind::of(&self.gguf).name().into()
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
