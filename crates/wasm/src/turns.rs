//! Turns of the event loop.

use js_sys::{Function, Promise};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

/// Lets the script's other work run between two pieces of work on the CPU: messages, such as the wish to end a reply. A GPU leaves time for them anyway.
#[derive(Clone, Default)]
pub(crate) struct Turns(Option<Function>);

impl Turns {
    /// Turns that a script's function gives: its promise settles when other work had its turn.
    pub(crate) fn by(pause: Function) -> Self {
        Self(Some(pause))
    }

    /// Whether turns must be given.
    pub(crate) fn are_needed(&self) -> bool {
        self.0.is_some()
    }

    /// Gives others a turn.
    pub(crate) async fn give(&self) {
        let Some(pause) = &self.0 else { return };
        // A pause that fails is none; nothing depends on it.
        if let Ok(promise) = pause.call0(&JsValue::NULL) {
            let _ = JsFuture::from(Promise::resolve(&promise)).await;
        }
    }
}
