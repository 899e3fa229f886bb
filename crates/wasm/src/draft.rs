//! Speculative decoding.

use rullama_runtime::{
    Drafter,
    session::{DEFAULT_DRAFTS, DraftCounts, DraftOptions, DraftSource},
};
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{error::Failure, header::Header, model::Model};

#[wasm_bindgen]
impl Model {
    /// New sessions use this drafter, with at most `tokens` drafts at a time; `always` drafts even if that is slower.
    pub async fn draft(
        &self,
        header: Header,
        tokens: Option<usize>,
        always: bool,
    ) -> Result<(), JsValue> {
        let Header { gguf, thrown, .. } = header;
        let loaded = Drafter::load(&gguf, &self.inner).await.map_err(Failure::from);
        let drafter = loaded.map_err(|failure| thrown.or(failure))?;
        self.set_drafts(DraftSource::Drafter(drafter), tokens, always);
        Ok(())
    }

    /// New sessions draft from earlier text of the conversation (n-grams).
    #[wasm_bindgen(js_name = draftFromText)]
    pub fn draft_from_text(&self, tokens: Option<usize>, always: bool) {
        self.set_drafts(DraftSource::Text, tokens, always);
    }
}

impl Model {
    fn set_drafts(&self, source: DraftSource, tokens: Option<usize>, always: bool) {
        let most = tokens.unwrap_or(DEFAULT_DRAFTS);
        let options = DraftOptions { most, adapt: !always, ..DraftOptions::new(source) };
        *self.drafts.borrow_mut() = Some(options);
    }
}

/// Draft counts of one reply; `None` without speculative decoding.
pub(crate) fn drafted(before: Option<DraftCounts>, after: Option<DraftCounts>) -> Option<Value> {
    let (before, after) = (before?, after?);
    Some(json!({
        "runs": after.rounds - before.rounds,
        "drafted": after.drafted - before.drafted,
        "accepted": after.accepted - before.accepted,
    }))
}
