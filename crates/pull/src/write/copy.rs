//! Copies a model to a second name.

use std::{fs, path::Path};

use rullama_store::{Digest, ModelName, Store};

use super::{StoreLock, stored_name};
use crate::{PullError, error::io_error, manifest::MAX_BYTES};

/// Gives the model `source` in the store at `root` a second name, replacing an existing model of that name.
pub fn copy(root: &Path, source: &ModelName, destination: &ModelName) -> Result<Digest, PullError> {
    let store = Store::open(root)?;
    let lock = StoreLock::acquire(root)?;
    let (_, path) = store.manifest(source)?;
    let length = fs::metadata(&path).map_err(|e| io_error("read", &path, e))?.len();
    if length > MAX_BYTES {
        let problem = format!("its manifest has {length} bytes");
        return Err(PullError::BadManifest { name: source.to_string(), problem });
    }
    let bytes = fs::read(&path).map_err(|e| io_error("read", &path, e))?;
    let destination = stored_name(root, destination)?;
    lock.write_manifest(&destination, &bytes)
}
