//! Files whose header was read: what sort of model they hold decides what they are loaded as.

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

/// A model's file; loading takes it.
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

/// Tells a script how far loading is, and keeps what it threw.
pub(crate) struct Telling<'a> {
    progress: &'a Function,
    source: Rc<ScriptSource>,
    threw: RefCell<Option<JsValue>>,
}

impl<'a> Telling<'a> {
    pub(crate) fn new(progress: &'a Function, source: Rc<ScriptSource>) -> Self {
        Self { progress, source, threw: RefCell::new(None) }
    }

    /// Bytes done, bytes in all, and milliseconds that were spent waiting for them; a true answer ends it.
    pub(crate) fn tell(&self, Progress { done, total }: Progress) -> ControlFlow<()> {
        let told = [done as f64, total as f64, self.source.waited()].map(JsValue::from);
        match self.progress.call3(&JsValue::NULL, &told[0], &told[1], &told[2]) {
            Ok(stop) if stop.is_truthy() => ControlFlow::Break(()),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                *self.threw.borrow_mut() = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Why loading failed: what the script threw, where that was the reason.
    pub(crate) fn failure(&self, error: RuntimeError) -> Failure {
        self.threw.take().map_or_else(|| error.into(), Failure::Script)
    }
}

/// The architecture that files of towers alone are called by.
const PROJECTOR: &str = "clip";

/// Reads a model's header.
pub(crate) async fn open_model(source: Rc<ScriptSource>) -> Result<Gguf, Failure> {
    let gguf = Gguf::open(source).await?;
    if gguf.str("general.architecture").is_ok_and(|name| name == PROJECTOR) {
        return Err(Failure::Projector);
    }
    Ok(gguf)
}
