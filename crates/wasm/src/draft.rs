//! Drafts: several tokens at a time, with the same answers.

use rullama_runtime::{
    Drafter,
    session::{DraftCounts, DraftOptions, DraftSource, USUAL_DRAFTS},
};
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{error::Failure, header::Header, model::Model};

#[wasm_bindgen]
impl Model {
    /// Conversations that begin from here on use this drafter, which guesses so many tokens at a time at most; `always` does so even
    /// where that is slower.
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

    /// Conversations that begin from here on guess from what was said before.
    #[wasm_bindgen(js_name = draftFromText)]
    pub fn draft_from_text(&self, tokens: Option<usize>, always: bool) {
        self.set_drafts(DraftSource::Text, tokens, always);
    }
}

impl Model {
    fn set_drafts(&self, source: DraftSource, tokens: Option<usize>, always: bool) {
        let most = tokens.unwrap_or(USUAL_DRAFTS);
        let options = DraftOptions { most, adapt: !always, ..DraftOptions::new(source) };
        *self.drafts.borrow_mut() = Some(options);
    }
}

/// What became of the drafts of one answer; nothing where none were made.
pub(crate) fn drafted(before: Option<DraftCounts>, after: Option<DraftCounts>) -> Option<Value> {
    let (before, after) = (before?, after?);
    Some(json!({
        "runs": after.rounds - before.rounds,
        "drafted": after.drafted - before.drafted,
        "accepted": after.accepted - before.accepted,
    }))
}
