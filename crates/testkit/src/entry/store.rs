//! Bytes as the manifest of a model in a store.

use std::fs;

use rullama_store::{Digest, Store};

use crate::StoreFolder;

/// A blob that manifests may name; `{blob}` in seeds is replaced by its digest.
const BLOB: &[u8] = b"{}";

/// Writes the bytes into a store as a manifest: the model is listed, errors have a message, and resolved paths are inside
/// the store.
pub fn manifest(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = StoreFolder::new(folder.path());
    files.blob("model", BLOB);
    let path = files.manifest_path("fuzz");
    let text = String::from_utf8_lossy(data);
    let named = text.replace("{blob}", Digest::of(BLOB).hex());
    fs::create_dir_all(path.parent().expect("a path in the store")).expect("a folder");
    fs::write(&path, if named == text { data } else { named.as_bytes() }).expect("a manifest");

    let store = Store::open(folder.path()).expect("the store is there");
    let listing = store.list();
    let [entry] = listing.entries.as_slice() else { panic!("one model is listed: {listing:?}") };
    match store.files(entry) {
        Ok(model) => {
            let summary = entry.summary.as_ref().expect("a model that resolves has a summary");
            assert_eq!((&model.name, &model.id), (&entry.name, &summary.id));
            for layer in &model.blobs {
                assert_eq!(layer.path.parent(), Some(folder.path().join("blobs").as_path()));
                assert_eq!(fs::metadata(&layer.path).expect("it was found").len(), layer.size);
                assert!(summary.digests.contains(&layer.digest));
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error without a message: {error:?}")
        }
    }
}
