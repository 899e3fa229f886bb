//! Drafts: `--draft`, and the drafter a model of the store comes with.

use anyhow::{Context, Result};
use clap::Args as Group;
use pollster::block_on;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Drafter, Model, Session,
    session::{DraftOptions, DraftSource, MOST_DRAFTS, USUAL_DRAFTS},
};

use crate::{
    locate::{Place, Stores},
    output::note,
};

/// How answers are drafted.
#[derive(Debug, Clone, Group)]
#[command(next_help_heading = "Speculative decoding")]
pub(crate) struct DraftArgs {
    /// Speculative decoding; does not change the reply: FILE is a drafter for this model (name, path or URL), `ngram` drafts from
    /// earlier text, `off` ignores the drafter that a store model comes with
    #[arg(long, value_name = "FILE|ngram|off")]
    draft: Option<String>,
    /// Maximum tokens to draft at a time; fewer are drafted where that is faster
    #[arg(long, value_name = "N", default_value_t = USUAL_DRAFTS, value_parser = tokens)]
    draft_tokens: usize,
}

fn tokens(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_DRAFTS).contains(number));
    number.ok_or_else(|| format!("give a number from 1 to {MOST_DRAFTS}"))
}

impl DraftArgs {
    /// How to draft for a model; `None` if nothing is to be drafted.
    pub(crate) fn options(
        &self,
        stores: &Stores,
        place: &Place,
        model: &Model,
    ) -> Result<Option<DraftOptions>> {
        let source = match self.draft.as_deref() {
            Some("off") => None,
            Some("ngram") => Some(DraftSource::Text),
            Some(file) => {
                let (_, gguf) = stores.open(file)?;
                Some(drafter(&gguf, model).with_context(|| file.to_owned())?)
            }
            None => own(place, model),
        };
        Ok(source
            .map(|source| DraftOptions { most: self.draft_tokens, ..DraftOptions::new(source) }))
    }

    /// Whether drafts were asked for.
    pub(crate) fn asked(&self) -> bool {
        self.draft.as_deref().is_some_and(|draft| draft != "off")
    }
}

fn drafter(gguf: &Gguf, model: &Model) -> Result<DraftSource> {
    Ok(DraftSource::Drafter(block_on(Drafter::load(gguf, model))?))
}

/// The drafter that a model of the store comes with. One that cannot be used is no reason not to answer.
fn own(place: &Place, model: &Model) -> Option<DraftSource> {
    let Place::Store(files) = place else { return None };
    let layer = files.draft.as_ref()?;
    let loaded = Place::Path(layer.path.clone()).open().and_then(|gguf| drafter(&gguf, model));
    match loaded {
        Ok(source) => Some(source),
        Err(error) => {
            note(&format!("the model's drafter is not used: {error:#}"));
            None
        }
    }
}

/// What became of drafts, in a line; `None` where nothing was drafted.
pub(crate) fn told(session: &Session) -> Option<String> {
    let counts = session.draft_counts().filter(|counts| counts.drafted > 0)?;
    let share = 100.0 * counts.accepted as f64 / counts.drafted as f64;
    Some(format!(
        "{} of {} accepted ({share:.0} %), {} passes",
        counts.accepted, counts.drafted, counts.rounds
    ))
}
