//! The file in which measured constants of kernel selection are kept: JSON, an entry for each GPU, driver and model.

use std::{collections::BTreeMap, fs, io, path::Path};

use rullama_engine::gpu::{Gpu, TUNING_PARAMETERS, Tuning, TuningParameter};
use rullama_gguf::Gguf;
use rullama_runtime::model::Summary;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What a measurement holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningKey {
    /// Name of the GPU.
    pub gpu: String,
    /// Its backend and driver, with version.
    pub driver: String,
    /// Architecture, size and format of the model.
    pub model: String,
}

impl TuningKey {
    /// For a model on a GPU. Models of the same shape and format share it.
    pub fn new(gpu: &Gpu, gguf: &Gguf) -> Self {
        let model = Summary::of(gguf).map_or_else(
            |_| String::new(),
            |summary| {
                let Summary { architecture, parameters, quantization, layers, .. } = summary;
                format!("{architecture}, {parameters} parameters, {layers} layers, {quantization}")
            },
        );
        Self { gpu: gpu.name().into(), driver: gpu.driver().into(), model }
    }
}

/// The constants of a tuning that differ from their defaults, by name.
pub fn changed_constants(tuning: Tuning) -> BTreeMap<String, u32> {
    let value = |parameter: &TuningParameter| (parameter.name.into(), parameter.get(tuning));
    let changed = TUNING_PARAMETERS
        .iter()
        .filter(|parameter| parameter.get(tuning) != parameter.get(Tuning::default()));
    changed.map(value).collect()
}

/// A tuning and what it gained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredTuning {
    /// What it holds for.
    #[serde(flatten)]
    pub key: TuningKey,
    /// Constants that differ from their defaults.
    pub constants: BTreeMap<String, u32>,
    /// Tokens per second with the defaults.
    pub before: f64,
    /// Tokens per second with the constants.
    pub after: f64,
}

impl MeasuredTuning {
    /// An entry for a tuning.
    pub fn new(key: TuningKey, tuning: Tuning, (before, after): (f64, f64)) -> Self {
        Self { key, constants: changed_constants(tuning), before, after }
    }

    /// The tuning; `None` if a constant is unknown or cannot have its value, as in a file of another version.
    pub fn tuning(&self) -> Option<Tuning> {
        self.constants.iter().try_fold(Tuning::default(), |tuning, (name, value)| {
            TUNING_PARAMETERS.iter().find(|parameter| parameter.name == name)?.set(tuning, *value)
        })
    }
}

/// The tunings that were measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tunings {
    /// One entry for each key.
    pub measured: Vec<MeasuredTuning>,
}

impl Tunings {
    /// Reads a file; without one there are none.
    ///
    /// # Errors
    /// If it cannot be read or is not such a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let wrong = |source| Error::Tuning { path: path.into(), source };
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(wrong(error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(error.into())),
        }
    }

    /// The tuning for a key.
    pub fn find(&self, key: &TuningKey) -> Option<Tuning> {
        self.measured.iter().find(|measured| measured.key == *key)?.tuning()
    }

    /// Removes the entry for a key; whether there was one.
    pub fn remove(&mut self, key: &TuningKey) -> bool {
        let before = self.measured.len();
        self.measured.retain(|measured| measured.key != *key);
        self.measured.len() < before
    }

    /// Adds an entry in place of an earlier one with the same key.
    pub fn insert(&mut self, measured: MeasuredTuning) {
        self.remove(&measured.key);
        self.measured.push(measured);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rullama_engine::gpu::Tuning;

    use super::{MeasuredTuning, TuningKey, Tunings};

    fn key(model: &str) -> TuningKey {
        TuningKey { gpu: "a GPU".into(), driver: "vulkan 1".into(), model: model.into() }
    }

    #[test]
    fn entries_are_found_replaced_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tuning.json");
        assert_eq!(Tunings::read(&path).expect("no file"), Tunings::default());
        let mut all = Tunings::default();
        let tuning = Tuning { wide_rows: 2, ..Tuning::default() };
        all.insert(MeasuredTuning::new(key("a"), Tuning::default(), (1.0, 1.0)));
        all.insert(MeasuredTuning::new(key("b"), tuning, (1.0, 1.1)));
        all.insert(MeasuredTuning::new(key("a"), tuning, (2.0, 2.5)));
        fs::write(&path, serde_json::to_vec(&all).expect("JSON")).expect("a file");
        let mut read = Tunings::read(&path).expect("a file");
        assert_eq!(read, all);
        assert_eq!(read.measured.len(), 2);
        assert_eq!(read.find(&key("a")), Some(tuning));
        assert_eq!(read.find(&key("c")), None);
        assert!(read.remove(&key("a")) && !read.remove(&key("a")));
        assert_eq!(read.find(&key("a")), None);
    }

    #[test]
    fn wrong_entries_and_files_are_not_used() {
        for constants in [r#"{"wide_rows":3}"#, r#"{"unheard_of":2}"#] {
            let entry = format!(
                r#"{{"measured":[{{"gpu":"a GPU","driver":"vulkan 1","model":"a","constants":{constants},"before":1,"after":2}}]}}"#
            );
            let read: Tunings = serde_json::from_str(&entry).expect("JSON");
            assert_eq!(read.find(&key("a")), None, "{constants}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tuning.json");
        fs::write(&path, "{").expect("a file");
        assert!(Tunings::read(&path).is_err());
    }
}
