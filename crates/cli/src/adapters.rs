//! `--adapter PATH[:WEIGHT]`, and the adapters a store model comes with.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args as Group;
use rullama::{Adapter, AdapterFiles, AdapterSet, CacheType, Location, read_adapter};
use rullama_runtime::{Model, Session, session::SessionOptions};

use crate::{load::Loader, output::note, output_file::protect};

#[derive(Debug, Clone, Default, Group)]
pub(crate) struct AdapterArgs {
    /// Use a LoRA adapter: a PEFT folder, safetensors file or GGUF file. Append `:0.5` for half its strength. May be repeated; adapters add up
    #[arg(long = "adapter", value_name = "PATH[:WEIGHT]", value_parser = chosen)]
    adapters: Vec<(PathBuf, f32)>,
}

impl AdapterArgs {
    /// Whether none was named.
    pub(crate) fn is_empty(&self) -> bool {
        self.adapters.is_empty()
    }

    /// The adapters with their weights, registered as files that no output may replace.
    pub(crate) fn protected(&self) -> Vec<(PathBuf, f32)> {
        self.adapters.iter().for_each(|(path, _)| protect_files(path));
        self.adapters.clone()
    }

    /// The adapters stored with the model and those of the command line.
    pub(crate) fn read(&self, location: &Location) -> Result<AdapterSet> {
        Ok(AdapterSet::read(location, &self.protected())?)
    }
}

fn chosen(text: &str) -> Result<(PathBuf, f32), String> {
    let whole = || Ok((PathBuf::from(text), 1.0));
    let Some((path, weight)) = text.rsplit_once(':') else { return whole() };
    if Path::new(text).exists() || path.is_empty() {
        return whole();
    }
    match weight.parse::<f32>() {
        Ok(weight) if weight.is_finite() => Ok((path.into(), weight)),
        // Windows drive letters have a colon, too.
        _ if weight.contains(['/', '\\']) => whole(),
        _ => Err(format!("adapter weight {weight:?} is not a number, such as 0.5")),
    }
}

fn protect_files(path: &Path) {
    let AdapterFiles { weights, config } = AdapterFiles::of(path);
    protect(&weights);
    protect(&config);
}

/// Reads an adapter that no output of the command may replace.
pub(crate) fn read(path: &Path) -> Result<Adapter> {
    protect_files(path);
    Ok(read_adapter(path)?)
}

/// A session with adapters. With f32 caches or exact kernels, their factors are f32, too.
pub(crate) fn session(
    adapters: &AdapterSet,
    model: &Model,
    options: &SessionOptions,
    loader: &Loader,
) -> Result<Session> {
    let exact = loader.options.exact || loader.options.cache == CacheType::F32;
    let session = adapters.session(model, options, exact)?;
    note_without_effect(&session);
    Ok(session)
}

/// Prints a note if tensors of adapters have no effect.
pub(crate) fn note_without_effect(session: &Session) {
    let without_effect = session.adapters().map_or(&[][..], |adapters| adapters.without_effect());
    if let [first, ..] = without_effect {
        let count = without_effect.len();
        note(&format!(
            "{count} adapter tensors have no effect in this model, such as {first}: their layers reuse the keys and values of other layers"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_the_last_colon() {
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
