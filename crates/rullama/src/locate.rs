//! Finds a model by name, path or URL and opens its bytes.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
};

use pollster::block_on;
use rullama_gguf::{Gguf, GgufError, Part};
use rullama_source::{ByteSource, FileSource, HttpOptions, HttpSource};
use rullama_store::{
    Environment, ModelFiles, ModelName, Platform, StoreError, candidates, resolve,
};

use crate::error::Error;

/// The name of the demo model.
pub const DEMO: &str = "demo";

/// Folders that may contain an Ollama store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stores(pub Vec<PathBuf>);

impl Default for Stores {
    /// The folder in the environment variable `OLLAMA_MODELS`, or Ollama's default folders.
    fn default() -> Self {
        Self(candidates(&Environment {
            ollama_models: std::env::var_os("OLLAMA_MODELS"),
            home: std::env::home_dir(),
            platform: Platform::CURRENT,
        }))
    }
}

/// Where a model is.
#[derive(Debug, Clone)]
pub enum Location {
    /// A model of Ollama's store.
    Store(Box<ModelFiles>),
    /// A GGUF file.
    Path(PathBuf),
    /// The URL of a GGUF file.
    Url(String),
    /// The demo model, which is part of this crate.
    Demo,
}

impl Stores {
    /// Finds a model: a URL by its scheme, a path by its form, then a name in the stores, then an existing file.
    ///
    /// ```
    /// use rullama::{Location, Stores};
    ///
    /// let stores = Stores::default();
    /// assert!(matches!(stores.find("./model.gguf")?, Location::Path(_)));
    /// assert!(matches!(stores.find("https://example.com/model.gguf")?, Location::Url(_)));
    /// assert!(matches!(stores.find("demo")?, Location::Demo));
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the model is not found, or its manifest is damaged.
    pub fn find(&self, model: &str) -> Result<Location, Error> {
        if is_url(model) {
            return Ok(Location::Url(model.into()));
        }
        if looks_like_path(model) {
            return Ok(Location::Path(model.into()));
        }
        match model.parse::<ModelName>().and_then(|name| resolve(&self.0, &name)) {
            Ok(files) => Ok(Location::Store(Box::new(files))),
            Err(StoreError::NotFound { .. }) if model == DEMO => Ok(Location::Demo),
            Err(StoreError::NotFound { .. } | StoreError::BadName { .. })
                if Path::new(model).is_file() =>
            {
                Ok(Location::Path(model.into()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Location {
    /// The bytes of the model file; of a split model, of its first part.
    ///
    /// # Errors
    /// If the file or URL cannot be read.
    pub fn source(&self) -> Result<Rc<dyn ByteSource>, Error> {
        Ok(match self {
            Self::Store(files) => Rc::new(FileSource::open(&files.model.path)?),
            Self::Path(path) => Rc::new(FileSource::open(path)?),
            Self::Url(url) => Rc::new(HttpSource::open(url, HttpOptions::default())?),
            Self::Demo => demo_source()?,
        })
    }

    /// The header of the model, of all parts if it is split.
    ///
    /// # Errors
    /// If a file cannot be read or is not a GGUF file.
    pub fn open(&self) -> Result<Gguf, Error> {
        let first = header(self.source()?)?;
        let name = first.name().to_owned();
        let wrong = |error: GgufError| Error::Gguf { name: name.clone(), source: error.into() };
        let Some(part) = first.part().map_err(wrong)? else { return Ok(first) };
        if part.number != 1 {
            return Err(wrong(GgufError::NotFirstPart { part: Some(part) }));
        }
        let others = self.others(part)?;
        let others = others.into_iter().map(|part| header(part.source()?));
        let others = others
            .collect::<Result<Vec<_>, Error>>()
            .map_err(|error| Error::Part { count: part.count, source: Box::new(error) })?;
        first.join(others).map_err(wrong)
    }

    /// The other parts of a split model.
    fn others(&self, first: Part) -> Result<Vec<Self>, Error> {
        let (path, make): (&Path, fn(String) -> Self) = match self {
            Self::Url(url) => (Path::new(url), Self::Url),
            Self::Path(path) => (path, |name| Self::Path(name.into())),
            Self::Store(files) => (&files.model.path, |name| Self::Path(name.into())),
            Self::Demo => return Ok(Vec::new()),
        };
        let name = path.to_string_lossy();
        let names = first
            .names(&name)
            .map_err(|error| Error::Gguf { name: name.to_string(), source: error.into() })?;
        Ok(names.into_iter().skip(1).map(make).collect())
    }
}

fn header(source: Rc<dyn ByteSource>) -> Result<Gguf, Error> {
    let name = source.name().to_owned();
    block_on(Gguf::open(source)).map_err(|error| match error {
        // Errors of sources contain their name.
        GgufError::Source(error) => error.into(),
        error => Error::Gguf { name, source: error.into() },
    })
}

/// The demo model as the bytes of a GGUF file.
///
/// # Errors
/// In a build without the feature `demo`.
pub fn demo_gguf() -> Result<Vec<u8>, Error> {
    #[cfg(feature = "demo")]
    return Ok(rullama_demo::gguf());
    #[cfg(not(feature = "demo"))]
    return Err(Error::NoDemo);
}

fn demo_source() -> Result<Rc<dyn ByteSource>, Error> {
    Ok(Rc::new(rullama_source::MemorySource::new(DEMO, demo_gguf()?)))
}

fn is_url(model: &str) -> bool {
    let scheme = model.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// Names never start with `.`, `/` or `~`, nor contain backslashes; `x.gguf` is taken as a path.
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
