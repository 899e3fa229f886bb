//! Finds the models of the command line. No output of a command may replace their files.

use std::{io::Write, path::Path};

use anyhow::{Context, Result};
use rullama::{DEMO, Location, demo_gguf};
use rullama_gguf::Gguf;
use rullama_runtime::model::{Capability, Summary, capabilities_of};
use rullama_store::Layer;
use tempfile::NamedTempFile;

use crate::output_file::{protect, protect_store};

/// The name of the demo model.
pub(crate) const DEMO_NAME: &str = DEMO;

/// The demo model as a temporary file, which is deleted on drop.
pub(crate) fn demo_file() -> Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("rullama-demo-")
        .suffix(".gguf")
        .tempfile()
        .context("cannot create a temporary file")?;
    file.write_all(&demo_gguf()?).context("cannot write the temporary file")?;
    Ok(file)
}

/// Folders that may hold a store, and whether they were named with `--store`.
pub(crate) struct Stores(pub(crate) rullama::Stores, bool);

/// The folders to search: the one given, or Ollama's default folders.
pub(crate) fn stores(chosen: Option<std::path::PathBuf>) -> Stores {
    let is_chosen = chosen.is_some();
    let stores =
        chosen.map_or_else(rullama::Stores::default, |folder| rullama::Stores(vec![folder]));
    stores.0.iter().for_each(|folder| protect_store(folder));
    Stores(stores, is_chosen)
}

impl Stores {
    /// These folders, as without `--store`.
    #[cfg(test)]
    pub(crate) fn of(folders: Vec<std::path::PathBuf>) -> Self {
        Self(rullama::Stores(folders), false)
    }

    /// Whether a folder was named with `--store`.
    pub(crate) fn is_chosen(&self) -> bool {
        self.1
    }

    /// Finds MODEL.
    pub(crate) fn find(&self, model: &str) -> Result<Location> {
        let location = self.0.find(model)?;
        if let Location::Path(path) = &location {
            protect(path);
        }
        Ok(location)
    }

    /// Finds MODEL and reads its header.
    pub(crate) fn open(&self, model: &str) -> Result<(Location, Gguf)> {
        let location = self.find(model)?;
        let gguf = open(&location)?;
        Ok((location, gguf))
    }
}

/// What a model can do, with the encoders of its projector files; nothing if it is not supported.
pub(crate) fn capabilities(location: &Location, gguf: &Gguf) -> Vec<&'static str> {
    if Summary::of(gguf).is_err() {
        return Vec::new();
    }
    let projectors = match location {
        Location::Store(files) => files.projectors.as_slice(),
        _ => &[],
    };
    let open = |layer: &Layer| Location::Path(layer.path.clone()).open().ok();
    let projectors: Vec<Gguf> = projectors.iter().filter_map(open).collect();
    capabilities_of(gguf, &projectors).into_iter().map(Capability::name).collect()
}

/// Reads the header of a model.
pub(crate) fn open(location: &Location) -> Result<Gguf> {
    let gguf = location.open()?;
    if matches!(location, Location::Path(_)) {
        gguf.file_names().for_each(|name| protect(Path::new(name)));
    }
    Ok(gguf)
}
