//! What a model file's header says about it, as far as clients ask.

use std::{path::Path, rc::Rc};

use rullama_gguf::{Gguf, GgufError, TensorInfo};
use rullama_source::{FileSource, SourceError};

/// The architecture this project runs.
const GEMMA: &str = "gemma4";

/// Facts of one file.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) architecture: String,
    pub(crate) parameters: u64,
    pub(crate) context_length: Option<u64>,
    pub(crate) embedding_length: Option<u64>,
    pub(crate) vision: bool,
    pub(crate) audio: bool,
}

/// Why a header could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Gguf(#[from] GgufError),
}

impl Facts {
    /// Reads the header of the file at `path`.
    pub(crate) fn of_file(path: &Path) -> Result<Self, HeaderError> {
        let source = Rc::new(FileSource::open(path)?);
        match pollster::block_on(Gguf::open(source)) {
            Ok(gguf) => Ok(Self::of(&gguf)),
            Err(GgufError::Source(error)) => Err(error.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn of(gguf: &Gguf) -> Self {
        let architecture = gguf.str("general.architecture").unwrap_or_default().to_owned();
        let number = |key: &str| gguf.u64(&format!("{architecture}.{key}")).ok();
        Self {
            parameters: gguf
                .tensors()
                .iter()
                .map(TensorInfo::elements)
                .fold(0, u64::saturating_add),
            context_length: number("context_length"),
            embedding_length: number("embedding_length"),
            vision: number("vision.block_count").is_some(),
            audio: number("audio.block_count").is_some(),
            architecture,
        }
    }

    /// Whether it is a model of the family this project runs.
    pub(crate) fn is_gemma(&self) -> bool {
        self.architecture == GEMMA
    }
}
