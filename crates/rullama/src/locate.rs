//! From what the user typed to an open source of bytes.

use std::{
    io::Write,
    path::{Path, PathBuf},
    rc::Rc,
};

use anyhow::{Context, Result};
use rullama_gguf::{Gguf, GgufError, Part};
use rullama_source::{ByteSource, FileSource, HttpOptions, HttpSource, MemorySource};
use rullama_store::{
    Environment, ModelFiles, ModelName, Platform, StoreError, candidates, resolve,
};
use tempfile::NamedTempFile;

use crate::output_file::{protect, protect_store};

/// The model that comes with the program, and its name.
const DEMO: &[u8] = include_bytes!("../../../demo/demo.gguf");
pub(crate) const DEMO_NAME: &str = "demo";

/// The demo model as a file, for those who need a path; it is gone with the value.
pub(crate) fn demo_file() -> Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("rullama-demo-")
        .suffix(".gguf")
        .tempfile()
        .context("cannot create a temporary file")?;
    file.write_all(DEMO).context("cannot write the temporary file")?;
    Ok(file)
}

/// Folders that may hold a store.
pub(crate) struct Stores(pub(crate) Vec<PathBuf>);

/// What MODEL turned out to be.
pub(crate) enum Place {
    /// A model of the store.
    Store(Box<ModelFiles>),
    /// A file.
    Path(PathBuf),
    /// A URL.
    Url(String),
    /// The model that comes with the program.
    Demo,
}

/// The folders to search: the one the user named, or Ollama's usual places.
pub(crate) fn stores(chosen: Option<PathBuf>) -> Stores {
    let folders = chosen.map_or_else(
        || {
            candidates(&Environment {
                ollama_models: std::env::var_os("OLLAMA_MODELS"),
                home: std::env::home_dir(),
                platform: Platform::CURRENT,
            })
        },
        |folder| vec![folder],
    );
    folders.iter().for_each(|folder| protect_store(folder));
    Stores(folders)
}

impl Stores {
    /// Finds MODEL: a URL by its scheme, a path by its looks, then a name, then any file there is.
    pub(crate) fn find(&self, model: &str) -> Result<Place> {
        if is_url(model) {
            return Ok(Place::Url(model.into()));
        }
        if looks_like_path(model) {
            return Ok(Place::Path(model.into()));
        }
        match model.parse::<ModelName>().and_then(|name| resolve(&self.0, &name)) {
            Ok(files) => Ok(Place::Store(Box::new(files))),
            Err(StoreError::NotFound { .. }) if model == DEMO_NAME => Ok(Place::Demo),
            Err(StoreError::NotFound { .. } | StoreError::BadName { .. })
                if Path::new(model).is_file() =>
            {
                Ok(Place::Path(model.into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Finds MODEL and reads its header.
    pub(crate) fn open(&self, model: &str) -> Result<(Place, Gguf)> {
        let place = self.find(model)?;
        let gguf = place.open()?;
        Ok((place, gguf))
    }
}

impl Place {
    /// The bytes of the model itself; of a split one, those of its first part.
    pub(crate) fn source(&self) -> Result<Rc<dyn ByteSource>> {
        if let Self::Path(path) = self {
            protect(path);
        }
        Ok(match self {
            Self::Store(files) => Rc::new(FileSource::open(&files.model.path)?),
            Self::Path(path) => Rc::new(FileSource::open(path)?),
            Self::Url(url) => Rc::new(HttpSource::open(url, HttpOptions::default())?),
            Self::Demo => Rc::new(MemorySource::new(DEMO_NAME, DEMO)),
        })
    }

    /// The header of the model itself, of all parts where it is split.
    pub(crate) fn open(&self) -> Result<Gguf> {
        let first = header(self.source()?)?;
        let name = first.name().to_owned();
        let Some(part) = first.part().with_context(|| name.clone())? else { return Ok(first) };
        if part.number != 1 {
            return Err(GgufError::NotFirstPart { part: Some(part) }).context(name);
        }
        let others = self.others(part)?;
        let others = others.into_iter().map(|place| header(place.source()?));
        let others = others.collect::<Result<Vec<_>>>().with_context(|| {
            format!("the model has {} parts, which must be in the same folder", part.count)
        })?;
        first.join(others).context(name)
    }

    /// Where the other parts of a split model are.
    fn others(&self, first: Part) -> Result<Vec<Self>> {
        let (path, make): (&Path, fn(String) -> Self) = match self {
            Self::Url(url) => (Path::new(url), Self::Url),
            Self::Path(path) => (path, |name| Self::Path(name.into())),
            Self::Store(files) => (&files.model.path, |name| Self::Path(name.into())),
            Self::Demo => return Ok(Vec::new()),
        };
        let names = first.names(&path.to_string_lossy())?;
        Ok(names.into_iter().skip(1).map(make).collect())
    }
}

fn header(source: Rc<dyn ByteSource>) -> Result<Gguf> {
    let name = source.name().to_owned();
    match pollster::block_on(Gguf::open(source)) {
        // Sources name themselves in their errors.
        Err(error @ GgufError::Source(_)) => Err(error.into()),
        result => result.context(name),
    }
}

fn is_url(model: &str) -> bool {
    let scheme = model.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// Names never start with `.`, `/` or `~`, nor contain backslashes; nobody calls a model `x.gguf`.
fn looks_like_path(model: &str) -> bool {
    let drive = model.as_bytes().get(1) == Some(&b':') && model.contains(['\\', '/']);
    model.starts_with(['.', '/', '~'])
        || model.contains('\\')
        || drive
        || model.to_ascii_lowercase().ends_with(".gguf")
}

#[cfg(test)]
mod tests {
    use super::{is_url, looks_like_path};

    #[test]
    fn urls_and_names() {
        for url in ["http://h/x.gguf", "HTTPS://h/x", "https://", "http://me:pass@h:80/x?y#z"] {
            assert!(is_url(url), "{url}");
        }
        for name in ["gemma4", "https:/x", "ftp://h/x", "localhost:5000/a/b:c", "://", ""] {
            assert!(!is_url(name), "{name}");
        }
    }

    #[test]
    fn paths_and_names() {
        for path in
            ["./model", "/m/x", "../x", "model.gguf", "a/b.GGUF", "C:\\m\\x", "C:/m/x", "~/x"]
        {
            assert!(looks_like_path(path), "{path}");
        }
        for name in [
            "gemma4",
            "gemma4:e2b",
            "alice/tuned:v1",
            "hf.co/org/repo:Q4_K_M",
            "localhost:5000/a/b:c",
        ] {
            assert!(!looks_like_path(name), "{name}");
        }
    }
}
