//! Listing a store.

use std::fs;

use rullama_store::StoreError;
use serde_json::json;

use crate::builder::Builder;

#[test]
fn models_with_their_sizes_and_ids() {
    let store = Builder::new();
    let layers = [store.blob("model", [0; 1_000]), store.blob("unknown", [0; 10])];
    let config = store.config(&json!({ "model_format": "gguf" }));
    let config_size = config["size"].as_u64().unwrap();
    let manifest = json!({ "config": config, "layers": layers });
    store.manifest("gemma4:e2b", &manifest);
    store.model("alice/tuned:v1", &[]);
    store.model("localhost/ns/x", &[]);

    let listing = store.store().list();
    assert!(listing.unreadable.is_empty());
    let names: Vec<String> = listing.entries.iter().map(|e| e.name.to_string()).collect();
    assert_eq!(names, ["localhost/ns/x:latest", "alice/tuned:v1", "gemma4:e2b"]);

    let gemma = &listing.entries[2];
    let summary = gemma.summary.as_ref().unwrap();
    assert_eq!(summary.size, 1_010 + config_size);
    assert_eq!(summary.id, rullama_store::Digest::of(manifest.to_string().as_bytes()));
    assert_eq!(gemma.manifest, store.manifest_path("gemma4:e2b"));
    let age = gemma.modified.unwrap().elapsed().unwrap_or_default();
    assert!(age.as_secs() < 600, "written just now");
}

#[test]
fn broken_models_are_listed_with_their_problem() {
    let store = Builder::new();
    store.model("good", &[]);
    store.manifest_text("empty", "");
    store.manifest_text("half", r#"{"config": {"#);
    let entries = store.store().list().entries;
    let state: Vec<(String, bool)> =
        entries.iter().map(|e| (e.name.to_string(), e.summary.is_ok())).collect();
    let expected = [("empty:latest", false), ("good:latest", true), ("half:latest", false)];
    assert_eq!(state, expected.map(|(name, ok)| (name.to_owned(), ok)));
    let problem = entries[0].summary.as_ref().unwrap_err();
    assert!(matches!(problem, StoreError::BadManifest { .. }), "{problem}");
}

#[test]
fn other_files_are_ignored() {
    let store = Builder::new();
    store.model("good", &[]);
    let manifests = store.root().join("manifests");
    let library = manifests.join("registry.ollama.ai").join("library");
    fs::write(manifests.join("file-at-level-one"), "").unwrap();
    fs::write(library.join(".DS_Store"), "").unwrap();
    fs::write(library.join("good").join(".hidden"), "").unwrap();
    fs::write(library.join("good").join("a b"), "").unwrap();
    fs::create_dir_all(library.join("good").join("folder").join("deeper")).unwrap();
    fs::write(library.join("good").join("folder").join("deeper").join("file"), "").unwrap();
    let listing = store.store().list();
    assert_eq!(listing.entries.len(), 1);
    assert!(listing.unreadable.is_empty());
    assert!(matches!(store.resolve("good:folder"), Err(StoreError::NotFound { .. })));
}

#[test]
fn an_empty_store_is_empty() {
    let store = Builder::new();
    let listing = store.store().list();
    assert!(listing.entries.is_empty() && listing.unreadable.is_empty());
}

#[test]
fn absurd_sizes_do_not_overflow() {
    let store = Builder::new();
    let layer = json!({
        "mediaType": "application/vnd.ollama.image.model",
        "digest": format!("sha256:{}", "0".repeat(64)),
        "size": u64::MAX,
    });
    store.model("m", &[layer.clone(), layer]);
    assert_eq!(store.store().list().entries[0].summary.as_ref().unwrap().size, u64::MAX);
}
