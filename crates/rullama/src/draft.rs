//! Speculative decoding: where drafts come from.

use pollster::block_on;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Drafter,
    session::{DEFAULT_DRAFTS, DraftOptions, DraftSource},
};

use crate::{
    error::Error,
    locate::{Location, Stores},
};

/// Where drafts for speculative decoding come from. They change the speed of a reply, not its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Draft {
    /// The drafter stored with a model of Ollama's store, if it has one.
    #[default]
    Auto,
    /// No drafts.
    Off,
    /// N-grams of earlier text of the conversation.
    Ngram,
    /// A drafter trained for the model: name, path or URL.
    Model(String),
}

/// How a session drafts.
#[derive(Debug, Default)]
pub struct Drafting {
    /// The options; `None` without drafts.
    pub options: Option<DraftOptions>,
    /// Why the drafter stored with the model is not used; replies work without it.
    pub unused: Option<Error>,
}

impl Draft {
    /// Loads the drafter; `most` is the maximum number of drafts at a time.
    ///
    /// # Errors
    /// If a drafter given by name cannot be used.
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
        let most = most.unwrap_or(DEFAULT_DRAFTS);
        let options = source.map(|source| DraftOptions { most, ..DraftOptions::new(source) });
        Ok(Drafting { options, unused })
    }
}

fn drafter(gguf: &Gguf, model: &rullama_runtime::Model) -> Result<DraftSource, Error> {
    Ok(DraftSource::Drafter(block_on(Drafter::load(gguf, model))?))
}

/// The drafter stored with a model of Ollama's store.
fn own(location: &Location, model: &rullama_runtime::Model) -> Result<Option<DraftSource>, Error> {
    let Location::Store(files) = location else { return Ok(None) };
    let Some(layer) = &files.draft else { return Ok(None) };
    drafter(&Location::Path(layer.path.clone()).open()?, model).map(Some)
}
