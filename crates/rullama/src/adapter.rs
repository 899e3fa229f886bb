//! LoRA adapters: their files, and the set that a session uses.

use std::{
    fs, io,
    path::{Path, PathBuf},
    rc::Rc,
};

use pollster::block_on;
use rullama_adapter::{Adapter, PeftFiles};
use rullama_runtime::{Model, Session, adapters::FactorType, session::SessionOptions};
use rullama_source::FileSource;

use crate::{error::Error, locate::Location};

/// The files of an adapter: its weights, and its configuration, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterFiles {
    /// The weights.
    pub weights: PathBuf,
    /// PEFT's `adapter_config.json`.
    pub config: PathBuf,
}

impl AdapterFiles {
    /// The files of an adapter given by a PEFT folder, a safetensors file or a GGUF file.
    pub fn of(path: &Path) -> Self {
        let weights = if path.is_dir() { path.join(PeftFiles::WEIGHTS) } else { path.to_owned() };
        Self { config: weights.with_file_name(PeftFiles::CONFIG), weights }
    }
}

/// Reads an adapter: a PEFT folder, a safetensors file with its configuration in the same folder, or a GGUF file.
///
/// ```
/// let adapter = rullama::read_adapter("../../goldens/lora/micro-e2b-Q8_0-adapter")?;
/// assert!(adapter.rank() > 0);
/// # Ok::<(), rullama::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read or is not a supported adapter.
pub fn read_adapter(path: impl AsRef<Path>) -> Result<Adapter, Error> {
    let AdapterFiles { weights, config } = AdapterFiles::of(path.as_ref());
    let config = match fs::read_to_string(&config) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::file(&config)(error)),
    };
    let source = Rc::new(FileSource::open(&weights)?);
    Ok(block_on(Adapter::read(source, config.as_deref()))?)
}

/// Writes an adapter as a PEFT folder; `base_model` is the `base_model_name_or_path` of its configuration.
///
/// # Errors
/// If a tensor has no PEFT name, or the folder cannot be written.
pub fn write_adapter(
    adapter: &Adapter,
    base_model: &str,
    folder: impl AsRef<Path>,
) -> Result<(), Error> {
    let folder = folder.as_ref();
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let files = adapter.to_peft(base_model)?;
    for (name, bytes) in
        [(PeftFiles::CONFIG, files.config.as_bytes()), (PeftFiles::WEIGHTS, &files.weights[..])]
    {
        let path = folder.join(name);
        // Written under a temporary name first, so that a failure keeps an earlier adapter intact.
        let write = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            io::Write::write_all(&mut file, bytes)?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(Error::file(&path))?;
    }
    Ok(())
}

/// Adapters, each with its strength.
#[derive(Debug, Clone, Default)]
pub struct AdapterSet(pub Vec<(Adapter, f32)>);

impl AdapterSet {
    /// The adapters stored with a model of Ollama's store, and those at these paths.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read(location: &Location, paths: &[(PathBuf, f32)]) -> Result<Self, Error> {
        let mut all = Vec::new();
        if let Location::Store(files) = location {
            for layer in &files.adapters {
                let adapter = read_adapter(&layer.path);
                all.push((adapter.map_err(|error| Error::StoredAdapter(error.into()))?, 1.0));
            }
        }
        for (path, weight) in paths {
            all.push((read_adapter(path)?, *weight));
        }
        Ok(Self(all))
    }

    /// A session that uses these adapters; `exact` keeps their factors in f32 instead of f16. Tensors without effect in this
    /// model are listed by [`rullama_runtime::adapters::Adapters::without_effect`].
    ///
    /// # Errors
    /// If the context is invalid, an adapter does not fit the model, or the device fails.
    pub fn session(
        &self,
        model: &Model,
        options: &SessionOptions,
        exact: bool,
    ) -> Result<Session, Error> {
        let mut session = model.session(options)?;
        self.attach(&mut session, exact)?;
        Ok(session)
    }

    /// Makes a session use these adapters.
    pub(crate) fn attach(&self, session: &mut Session, exact: bool) -> Result<(), Error> {
        if self.0.is_empty() {
            session.set_adapters(None)?;
            return Ok(());
        }
        let factors = if exact { FactorType::F32 } else { FactorType::F16 };
        let all: Vec<(&Adapter, f32)> = self.0.iter().map(|(adapter, w)| (adapter, *w)).collect();
        let attached = block_on(session.model().attach(&all, factors))?;
        session.set_adapters(Some(&attached))?;
        Ok(())
    }
}
