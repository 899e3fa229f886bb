//! A run written down, so that another can go on with the same numbers.

use std::{borrow::Cow, collections::HashMap};

use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// Where the rest of a checkpoint stands in its file.
const KEY: &str = "rullama_checkpoint";

/// A run written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// What it was a run of.
    pub about: About,
    /// Parameters and moments, by name.
    pub states: Vec<(String, Vec<f32>)>,
}

/// What a run was, and how far it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Updates so far.
    pub steps: u32,
    /// Tells the model from others.
    pub model: String,
    /// Tells the data from others.
    pub data: String,
    /// The options that decide about the numbers.
    pub options: String,
    /// The loss before each update so far.
    pub losses: Vec<f64>,
    /// Losses on the examples set aside, with the number of updates before each.
    pub evaluations: Vec<(u32, f64)>,
}

impl Checkpoint {
    /// As the bytes of a safetensors file.
    ///
    /// # Errors
    /// If the container does not take it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TrainError> {
        let wrong = |why: String| TrainError::Checkpoint { why };
        let about = serde_json::to_string(&self.about)
            .map_err(|error| wrong(format!("cannot be written: {error}")))?;
        let views = self.states.iter().map(|(name, numbers)| (name, Numbers::of(numbers)));
        let metadata = HashMap::from([(KEY.to_owned(), about)]);
        safetensors::serialize(views, Some(metadata))
            .map_err(|error| wrong(format!("cannot be written: {error}")))
    }

    /// From the bytes of a file.
    ///
    /// # Errors
    /// If it is no checkpoint, or damaged.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, TrainError> {
        let wrong = |why: String| TrainError::Checkpoint { why };
        let damaged = |error| wrong(format!("is damaged: {error}"));
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let about = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY).cloned());
        let about = about.ok_or_else(|| wrong("is no checkpoint of rullama".into()))?;
        let about: About =
            serde_json::from_str(&about).map_err(|error| wrong(format!("is damaged: {error}")))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let mut states = Vec::new();
        for (name, view) in tensors.iter() {
            if view.dtype() != Dtype::F32 {
                return Err(wrong(format!("has {name:?} in another format")));
            }
            let number =
                |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            states.push((name.to_owned(), view.data().chunks_exact(4).map(number).collect()));
        }
        Ok(Self { about, states })
    }

    /// Refuses what another run has left: `lengths` are the names and lengths of what there must be.
    pub(crate) fn check(
        &self,
        wanted: &About,
        lengths: &[(String, usize)],
    ) -> Result<(), TrainError> {
        let wrong = |why: &str| Err(TrainError::Checkpoint { why: why.into() });
        if self.about.model != wanted.model {
            return wrong("belongs to another model");
        }
        if self.about.data != wanted.data {
            return wrong(
                "was made with other data; begin anew, or give the data it was made with",
            );
        }
        if self.about.options != wanted.options {
            let why = format!(
                "was made with other options: {} instead of {}",
                self.about.options, wanted.options
            );
            return Err(TrainError::Checkpoint { why });
        }
        let known: HashMap<&str, usize> =
            self.states.iter().map(|(name, numbers)| (name.as_str(), numbers.len())).collect();
        let fits = known.len() == lengths.len()
            && lengths.iter().all(|(name, length)| known.get(name.as_str()) == Some(length));
        if fits { Ok(()) } else { wrong("has other adapters than this run") }
    }
}

/// Numbers whose bytes are made when they are written: all of them at once would take as much memory again.
struct Numbers<'a> {
    shape: [usize; 1],
    numbers: &'a [f32],
}

impl<'a> Numbers<'a> {
    fn of(numbers: &'a [f32]) -> Self {
        Self { shape: [numbers.len()], numbers }
    }
}

impl View for Numbers<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn data_len(&self) -> usize {
        size_of_val(self.numbers)
    }
}
