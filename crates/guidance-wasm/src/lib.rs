//! JavaScript bindings of `rullama-guidance`: conversions only. A page loads this module when a reply is constrained.

use js_sys::{Reflect, Uint32Array};
use rullama_guidance::{Format, GuidanceError, TokenTexts};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

// Logs panics: without this a page sees only "unreachable executed".
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| error(&info.to_string())));
}

/// A model's vocabulary, prepared for formats of replies.
#[wasm_bindgen]
pub struct Vocabulary(rullama_guidance::Vocabulary);

#[wasm_bindgen]
impl Vocabulary {
    /// Reads the vocabulary that a model packed.
    #[wasm_bindgen(constructor)]
    pub fn new(packed: &[u8]) -> Result<Self, JsValue> {
        let texts = TokenTexts::unpack(packed).map_err(thrown)?;
        Ok(Self(rullama_guidance::Vocabulary::new(&texts).map_err(thrown)?))
    }

    /// Compiles a format, given as JSON.
    pub fn compile(&self, format: &str) -> Result<Matcher, JsValue> {
        let format = Format::from_json(format).map_err(thrown)?;
        Ok(Matcher(self.0.compile(&format).map_err(thrown)?))
    }
}

/// The constraint of one reply.
#[wasm_bindgen]
pub struct Matcher(rullama_guidance::Matcher);

#[wasm_bindgen]
impl Matcher {
    /// A constraint in the same state.
    pub fn fork(&self) -> Self {
        Self(self.0.clone())
    }

    /// The tokens that may come next: bit `id % 32` of word `id / 32`.
    pub fn mask(&mut self) -> Result<Uint32Array, JsValue> {
        Ok(Uint32Array::from(self.0.mask().map_err(thrown)?))
    }

    /// Advances by a token; true if only the end can follow.
    pub fn commit(&mut self, id: u32) -> Result<bool, JsValue> {
        self.0.commit(id).map_err(thrown)
    }

    /// Advances by text that the reply begins with; true if only the end can follow.
    pub fn advance(&mut self, text: &str) -> Result<bool, JsValue> {
        self.0.advance(text).map_err(thrown)
    }
}

/// An exception of the client's class for bad options.
#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn thrown(error: GuidanceError) -> JsValue {
    let exception = js_sys::Error::new(&error.to_string());
    // Setting a property of a new object cannot fail.
    let _ = Reflect::set(&exception, &"code".into(), &"bad_options".into());
    exception.into()
}
