//! Speculative decoding: where drafts come from.

use pollster::block_on;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Drafter,
    session::{DraftOptions, DraftSource, USUAL_DRAFTS},
};

use crate::{
    error::Error,
    locate::{Location, Stores},
};

/// Where drafts for speculative decoding come from. They change the speed of a reply, not its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Draft {
    /// The drafter that a model of the store comes with, if it has one.
    #[default]
    Auto,
    /// Nothing is drafted.
    Off,
    /// Earlier text of the conversation.
    Ngram,
    /// A drafter made for the model: name, path or URL.
    Model(String),
}

/// How a session drafts.
#[derive(Debug, Default)]
pub struct Drafting {
    /// The options; `None` if nothing is drafted.
    pub options: Option<DraftOptions>,
    /// Why the drafter that the model comes with is not used: no reason not to reply.
    pub unused: Option<Error>,
}

impl Draft {
    /// Loads the drafter; `most` is how many tokens are drafted at a time, at most.
    ///
    /// # Errors
    /// If a drafter that was named cannot be used.
    pub fn load(
        &self,
        stores: &Stores,
        location: &Location,
        model: &rullama_runtime::Model,
        most: Option<usize>,
    ) -> Result<Drafting, Error> {
        let mut unused = None;
        let source = match self {
            Self::Off => None,
            Self::Ngram => Some(DraftSource::Text),
            Self::Model(name) => {
                let gguf = stores.find(name)?.open()?;
                let named = |error| Error::Drafter { name: name.clone(), source: Box::new(error) };
                Some(drafter(&gguf, model).map_err(named)?)
            }
            Self::Auto => {
                let own = own(location, model);
                own.unwrap_or_else(|error| {
                    unused = Some(error);
                    None
                })
            }
        };
        let most = most.unwrap_or(USUAL_DRAFTS);
        let options = source.map(|source| DraftOptions { most, ..DraftOptions::new(source) });
        Ok(Drafting { options, unused })
    }
}

fn drafter(gguf: &Gguf, model: &rullama_runtime::Model) -> Result<DraftSource, Error> {
    Ok(DraftSource::Drafter(block_on(Drafter::load(gguf, model))?))
}

/// The drafter that a model of the store comes with.
fn own(location: &Location, model: &rullama_runtime::Model) -> Result<Option<DraftSource>, Error> {
    let Location::Store(files) = location else { return Ok(None) };
    let Some(layer) = &files.draft else { return Ok(None) };
    drafter(&Location::Path(layer.path.clone()).open()?, model).map(Some)
}
