//! Speculative decoding: `--draft`, and the drafter a model of the store comes with.

use anyhow::Result;
use clap::Args as Group;
use rullama::{Draft, Drafting, Location};
use rullama_runtime::{
    Model, Session,
    session::{DEFAULT_DRAFTS, DraftOptions, MAX_DRAFTS},
};

use crate::{locate::Stores, output::note};

/// Options of speculative decoding.
#[derive(Debug, Clone, Group)]
#[command(next_help_heading = "Speculative decoding")]
pub(crate) struct DraftArgs {
    /// Speculative decoding; does not change the reply: FILE is a drafter for this model (name, path or URL), `ngram` drafts from
    /// earlier text, `off` ignores the drafter that a store model comes with
    #[arg(long, value_name = "FILE|ngram|off")]
    draft: Option<String>,
    /// Maximum tokens to draft at a time; fewer are drafted where that is faster
    #[arg(long, value_name = "N", default_value_t = DEFAULT_DRAFTS, value_parser = tokens)]
    pub(crate) draft_tokens: usize,
}

fn tokens(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_DRAFTS).contains(number));
    number.ok_or_else(|| format!("give a number from 1 to {MAX_DRAFTS}"))
}

impl DraftArgs {
    /// Where drafts come from.
    pub(crate) fn source(&self) -> Draft {
        match self.draft.as_deref() {
            None => Draft::Auto,
            Some("off") => Draft::Off,
            Some("ngram") => Draft::Ngram,
            Some(file) => Draft::Model(file.into()),
        }
    }

    /// The draft options for a model; `None` without drafts.
    pub(crate) fn options(
        &self,
        stores: &Stores,
        location: &Location,
        model: &Model,
    ) -> Result<Option<DraftOptions>> {
        let most = Some(self.draft_tokens);
        let Drafting { options, unused } = self.source().load(&stores.0, location, model, most)?;
        unused.iter().for_each(note_unused);
        Ok(options)
    }

    /// Whether anything was said about drafts.
    pub(crate) fn is_given(&self) -> bool {
        self.draft.is_some()
    }

    /// Whether drafts were requested.
    pub(crate) fn wanted(&self) -> bool {
        !matches!(self.source(), Draft::Auto | Draft::Off)
    }
}

/// Prints a note why the drafter stored with a model is not used.
pub(crate) fn note_unused(error: &rullama::Error) {
    note(&format!("the model's drafter is not used: {error}"));
}

/// A line with draft counts; `None` without drafts.
pub(crate) fn summary(session: &Session) -> Option<String> {
    let counts = session.draft_counts().filter(|counts| counts.drafted > 0)?;
    let share = 100.0 * counts.accepted as f64 / counts.drafted as f64;
    Some(format!(
        "{} of {} accepted ({share:.0} %), {} passes",
        counts.accepted, counts.drafted, counts.rounds
    ))
}
