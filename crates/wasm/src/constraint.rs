//! Constraints of replies, which another module computes.

use js_sys::Uint32Array;
use rullama_runtime::generate::{CallRule, Constraint, ConstraintError};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// What a page passes: an object that computes masks.
    pub type TokenConstraint;

    /// The tokens that may come next: bit `id % 32` of word `id / 32`.
    #[wasm_bindgen(method, catch)]
    fn mask(this: &TokenConstraint) -> Result<Uint32Array, JsValue>;

    /// Advances by a token; true if only the end can follow.
    #[wasm_bindgen(method, catch)]
    fn commit(this: &TokenConstraint, id: u32) -> Result<bool, JsValue>;

    /// Whether the reply is a tool call: `never`, `maybe` or `always`.
    #[wasm_bindgen(method, getter)]
    fn calls(this: &TokenConstraint) -> String;
}

/// The constraint of one reply.
pub(crate) struct PageConstraint {
    page: TokenConstraint,
    bits: Vec<u32>,
}

impl PageConstraint {
    pub(crate) fn new(page: TokenConstraint) -> Self {
        Self { page, bits: Vec::new() }
    }
}

impl Constraint for PageConstraint {
    fn prepare(&mut self) -> Result<(), ConstraintError> {
        let mask = self.page.mask().map_err(|error| lost(&error))?;
        self.bits.resize(mask.length() as usize, 0);
        mask.copy_to(&mut self.bits);
        Ok(())
    }

    fn allows(&self, id: u32) -> bool {
        self.bits.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    fn accept(&mut self, id: u32) -> Result<bool, ConstraintError> {
        self.page.commit(id).map_err(|error| lost(&error))
    }

    fn calls(&self) -> CallRule {
        match self.page.calls().as_str() {
            "always" => CallRule::Always,
            "maybe" => CallRule::Maybe,
            _ => CallRule::Never,
        }
    }
}

fn lost(error: &JsValue) -> ConstraintError {
    let message = error.dyn_ref::<js_sys::Error>().map(|error| String::from(error.message()));
    ConstraintError::Lost { why: message.unwrap_or_else(|| format!("{error:?}")) }
}
