//! `--adapter PATH[:WEIGHT]`, and the adapters a store model comes with.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
};

use anyhow::{Context, Result};
use clap::Args as Group;
use pollster::block_on;
use rullama_adapter::{Adapter, PeftFiles};
use rullama_runtime::{
    Model, Session, adapters::FactorType, model::CacheType, session::SessionOptions,
};
use rullama_source::FileSource;

use crate::{load::Loader, locate::Place, output::note, output_file::protect};

#[derive(Debug, Clone, Default, Group)]
pub(crate) struct AdapterArgs {
    /// Use a LoRA adapter: a PEFT folder, safetensors file or GGUF file. Append `:0.5` for half its strength. May be repeated; adapters add up
    #[arg(long = "adapter", value_name = "PATH[:WEIGHT]", value_parser = chosen)]
    adapters: Vec<(PathBuf, f32)>,
}

/// Adapters that were read, and how much each counts.
#[derive(Default)]
pub(crate) struct Chosen(Vec<(Adapter, f32)>);

fn chosen(text: &str) -> Result<(PathBuf, f32), String> {
    let whole = || Ok((PathBuf::from(text), 1.0));
    let Some((path, weight)) = text.rsplit_once(':') else { return whole() };
    if Path::new(text).exists() || path.is_empty() {
        return whole();
    }
    match weight.parse::<f32>() {
        Ok(weight) if weight.is_finite() => Ok((path.into(), weight)),
        // Drives of Windows have a colon too.
        _ if weight.contains(['/', '\\']) => whole(),
        _ => Err(format!("adapter weight {weight:?} is not a number, such as 0.5")),
    }
}

/// Reads an adapter that no output of the command may replace.
pub(crate) fn read(path: &Path) -> Result<Adapter> {
    let (file, config) = files(path);
    protect(&file);
    protect(&config);
    read_for_update(path)
}

/// The weights of an adapter and its configuration, which may not be there.
fn files(path: &Path) -> (PathBuf, PathBuf) {
    let file = if path.is_dir() { path.join(PeftFiles::WEIGHTS) } else { path.to_owned() };
    let config = file.with_file_name(PeftFiles::CONFIG);
    (file, config)
}

/// Reads an adapter that training may replace: a folder, a file with its configuration beside it, or a file alone.
pub(crate) fn read_for_update(path: &Path) -> Result<Adapter> {
    let (file, config) = files(path);
    let config = match std::fs::read_to_string(&config) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).context(config.display().to_string()),
    };
    let source = Rc::new(FileSource::open(&file)?);
    Ok(block_on(Adapter::read(source, config.as_deref()))?)
}

impl Chosen {
    /// Those the model comes with, and those the user named.
    pub(crate) fn new(place: &Place, args: &AdapterArgs) -> Result<Self> {
        let mut all = Vec::new();
        if let Place::Store(files) = place {
            for layer in &files.adapters {
                let adapter = read(&layer.path).context("the adapter this model comes with")?;
                all.push((adapter, 1.0));
            }
        }
        for (path, weight) in &args.adapters {
            all.push((read(path)?, *weight));
        }
        Ok(Self(all))
    }

    /// One more.
    pub(crate) fn and(mut self, adapter: Option<Adapter>) -> Self {
        self.0.extend(adapter.map(|adapter| (adapter, 1.0)));
        self
    }

    pub(crate) fn all(&self) -> &[(Adapter, f32)] {
        &self.0
    }

    /// A session of the model that answers with them. Who compares numbers has their factors exact, as the caches are.
    pub(crate) fn session(
        &self,
        model: &Model,
        options: &SessionOptions,
        loader: &Loader,
    ) -> Result<Session> {
        let mut session = model.session(options)?;
        if self.0.is_empty() {
            return Ok(session);
        }
        let exact = loader.exact || loader.cache == CacheType::F32;
        let factors = if exact { FactorType::F32 } else { FactorType::F16 };
        let all: Vec<(&Adapter, f32)> = self.0.iter().map(|(adapter, w)| (adapter, *w)).collect();
        let ready = block_on(model.attach(&all, factors))?;
        if let [first, ..] = ready.without_effect() {
            let count = ready.without_effect().len();
            note(&format!(
                "{count} adapter tensors have no effect in this model, such as {first}: their layers reuse the keys and values of other layers"
            ));
        }
        session.set_adapters(Some(&ready))?;
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_stand_behind_the_last_colon() {
        for (text, path, weight) in [
            ("a/b", "a/b", 1.0),
            ("a/b:0.5", "a/b", 0.5),
            ("a.gguf:-2", "a.gguf", -2.0),
            ("C:\\a", "C:\\a", 1.0),
            ("C:/a:2", "C:/a", 2.0),
        ] {
            assert_eq!(chosen(text), Ok((path.into(), weight)), "{text}");
        }
        assert!(chosen("a:much").is_err());
        assert!(chosen("a:inf").is_err());
    }
}
