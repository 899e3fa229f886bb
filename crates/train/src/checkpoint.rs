//! Checkpoints: safetensors files of parameters and optimizer moments, read and written one tensor at a time, from which a run continues
//! bit for bit.

use std::{collections::HashMap, rc::Rc};

use rullama_adapter::{
    AdapterError,
    container::{Container, header},
};
use rullama_source::{ByteSource, Bytes};
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// The metadata key of [`About`] as JSON.
const KEY: &str = "rullama_checkpoint";

/// A checkpoint file whose header was read.
pub struct Checkpoint {
    pub(crate) about: About,
    file: Container,
}

/// Identity and progress of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    /// Optimizer steps so far.
    pub(crate) steps: u32,
    /// Fingerprint of the model.
    pub(crate) model: String,
    /// Fingerprint of the training data.
    pub(crate) data: String,
    /// The options that affect the result.
    pub(crate) options: String,
    /// The loss before each step so far.
    pub(crate) losses: Vec<f64>,
    /// Losses on the held-out examples, each with the number of steps before it.
    pub(crate) evaluations: Vec<(u32, f64)>,
}

impl About {
    /// Header of a checkpoint file with these states.
    pub(crate) fn header(&self, states: &[(String, usize)]) -> Result<Vec<u8>, TrainError> {
        let about = serde_json::to_string(self)
            .map_err(|error| wrong(format!("cannot be written: {error}")))?;
        let tensors = states.iter().map(|(name, length)| (name.clone(), vec![*length]));
        Ok(header(HashMap::from([(KEY.to_owned(), about)]), tensors)?)
    }
}

impl Checkpoint {
    /// Opens a checkpoint and reads its header.
    ///
    /// # Errors
    /// If the file is not a checkpoint, or damaged.
    pub async fn open(source: Rc<dyn ByteSource>) -> Result<Self, TrainError> {
        let file = Container::open(source).await.map_err(|error| match error {
            AdapterError::NotAnAdapter { why, .. } => wrong(format!("is damaged: {why}")),
            other => other.into(),
        })?;
        let about = file.metadata(KEY).ok_or_else(|| wrong("was not written by rullama".into()))?;
        let about =
            serde_json::from_str(about).map_err(|error| wrong(format!("is damaged: {error}")))?;
        for (name, tensor) in file.tensors() {
            if tensor.dtype != Dtype::F32 {
                return Err(wrong(format!("has {name:?} in another format")));
            }
        }
        Ok(Self { about, file })
    }

    /// Checks that the checkpoint belongs to this run: `lengths` are the names and lengths of its states.
    pub(crate) fn check(
        &self,
        wanted: &About,
        lengths: &[(String, usize)],
    ) -> Result<(), TrainError> {
        if self.about.model != wanted.model {
            return Err(wrong("belongs to another model".into()));
        }
        if self.about.data != wanted.data {
            let what = "was made with other data: give that data, or start a new run";
            return Err(wrong(what.into()));
        }
        if self.about.options != wanted.options {
            let (found, wanted) = (&self.about.options, &wanted.options);
            return Err(wrong(format!("was made with other options: {found} instead of {wanted}")));
        }
        let tensors = self.file.tensors();
        let known: HashMap<&str, usize> = tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor.shape.iter().product()))
            .collect();
        let fits = known.len() == lengths.len()
            && lengths.iter().all(|(name, length)| known.get(name.as_str()) == Some(length));
        if fits { Ok(()) } else { Err(wrong("has other LoRA pairs than this run".into())) }
    }

    /// The bytes of a state.
    pub(crate) async fn state(&self, name: &str) -> Result<Bytes, TrainError> {
        let tensors = self.file.tensors();
        let found = tensors.iter().find(|(other, _)| other == name);
        let (_, tensor) = found.ok_or_else(|| wrong(format!("has no {name:?}")))?;
        Ok(self.file.bytes(tensor).await?)
    }
}

fn wrong(why: String) -> TrainError {
    TrainError::Checkpoint { why }
}
