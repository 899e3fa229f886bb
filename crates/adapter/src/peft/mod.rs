//! PEFT's safetensors format.

mod config;
mod key;
mod write;

use crate::{
    Adapter, Format,
    container::Container,
    error::AdapterError,
    halves::{Half, Halves},
    names,
    tensors::matrix,
};

use config::Config;
use key::Key;
pub(crate) use write::pieces;
pub use write::{PeftFiles, PeftPieces};

/// `config` is the text of `adapter_config.json`; without it, the file's own metadata must hold rank and alpha.
pub(crate) async fn read(file: &Container, config: Option<&str>) -> Result<Adapter, AdapterError> {
    let config = match config {
        Some(text) => Config::parse(text)?,
        None => Config::from_metadata(file)?
            .ok_or_else(|| AdapterError::NoConfig { name: file.name().into() })?,
    };
    let (mut halves, mut unknown, mut ignored) = (Halves::default(), Vec::new(), Vec::new());
    let mut modules = std::collections::HashMap::new();
    let tensors = file.tensors();
    for (name, info) in &tensors {
        let key = Key::parse(name)?;
        let (module, half, lookup) = match key {
            Key::Factor { module, half, lookup } => (module, half, lookup),
            Key::Base => {
                ignored.push(name.to_owned());
                continue;
            }
            Key::Unknown => {
                unknown.push(name.to_owned());
                continue;
            }
        };
        if names::of_tower(module) {
            ignored.push(name.to_owned());
            continue;
        }
        let Some(tensor) = names::tensor(module) else {
            unknown.push(name.to_owned());
            continue;
        };
        let matrix = matrix(file, name, info).await?;
        // PEFT stores the embedding's factors as for a linear layer on one-hot columns; here they are rows of the table.
        match (lookup, half) {
            (true, Half::A) => halves.add(&tensor, Half::B, matrix.transposed())?,
            (true, Half::B) => halves.add(&tensor, Half::A, matrix.transposed())?,
            (false, half) => halves.add(&tensor, half, matrix)?,
        }
        modules.insert(tensor, module);
    }
    if !unknown.is_empty() {
        return Err(AdapterError::UnknownTensors { names: unknown });
    }
    let pairs = halves.pairs(|tensor, rank| config.scale(modules[tensor], tensor, rank))?;
    if pairs.is_empty() {
        return Err(AdapterError::Empty { name: file.name().into() });
    }
    let (name, base_model) = (file.name().to_owned(), config.base_model().map(str::to_owned));
    Ok(Adapter { name, format: Format::Peft, architecture: None, base_model, pairs, ignored })
}
