//! Resolving a name to files and texts.

use std::fs;

use rullama_store::{LayerKind, StoreError};
use serde_json::json;

use crate::builder::{Builder, parse};

#[test]
fn a_single_file_model() {
    let store = Builder::new();
    store.model("gemma4:e2b", &[store.blob("model", b"GGUF weights")]);
    let files = store.resolve("gemma4:e2b").unwrap();
    assert_eq!(files.name.to_string(), "gemma4:e2b");
    assert_eq!(files.manifest, store.manifest_path("gemma4:e2b"));
    assert_eq!(fs::read(&files.model.path).unwrap(), b"GGUF weights");
    assert_eq!((files.model.size, files.model.kind), (12, LayerKind::Model));
    assert_eq!(files.config.model_family.as_deref(), Some("gemma4"));
    assert!(files.projectors.is_empty() && files.adapters.is_empty() && files.draft.is_none());
    assert!(files.template.is_none() && files.system.is_none() && files.licenses.is_empty());
    assert!(files.params.is_none() && files.messages.is_none());
}

#[test]
fn a_split_model_with_every_kind_of_layer() {
    let store = Builder::new();
    let unknown = json!({ "mediaType": "application/vnd.example.new", "digest": 7, "size": "?" });
    store.model(
        "alice/tuned:v1",
        &[
            unknown,
            store.blob("embed", "obsolete"),
            store.blob("model", "superseded"),
            store.blob("model", "weights"),
            store.blob("projector", "vision"),
            store.blob("projector", "audio"),
            store.blob("adapter", "first"),
            store.blob("adapter", "second"),
            store.blob("draft", "drafter"),
            store.blob("template", "old"),
            store.blob("template", "{{ .Prompt }}"),
            store.blob("system", "Be brief. ✓"),
            store.blob("params", r#"{"temperature":1,"stop":["<turn|>"],"num_ctx":8192}"#),
            store.blob("messages", r#"[{"role":"user","content":"hi"}]"#),
            store.blob("license", "MIT"),
            store.blob("license", b"caf\xe9"),
        ],
    );
    let files = store.resolve("alice/tuned:v1").unwrap();
    let read = |layer: &rullama_store::Layer| fs::read_to_string(&layer.path).unwrap();
    assert_eq!(read(&files.model), "weights", "the last one wins");
    assert_eq!(files.projectors.iter().map(read).collect::<Vec<_>>(), ["vision", "audio"]);
    assert_eq!(files.adapters.iter().map(read).collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(read(files.draft.as_ref().unwrap()), "drafter");
    assert_eq!(files.template.as_deref(), Some("{{ .Prompt }}"));
    assert_eq!(files.system.as_deref(), Some("Be brief. ✓"));
    let params = files.params.unwrap();
    assert_eq!(params["stop"], json!(["<turn|>"]));
    assert_eq!(params.keys().collect::<Vec<_>>(), ["temperature", "stop", "num_ctx"]);
    assert_eq!(files.messages.unwrap()[0]["content"], "hi");
    assert_eq!(files.licenses, ["MIT", "caf\u{fffd}"]);
    assert_eq!(files.blobs.len(), 13, "config and every layer in use");
}

#[test]
fn the_prompt_layer_of_old_models_is_a_template() {
    let store = Builder::new();
    store.model("m", &[store.blob("model", "w"), store.blob("prompt", "{{ .Old }}")]);
    assert_eq!(store.resolve("m").unwrap().template.as_deref(), Some("{{ .Old }}"));
}

#[test]
fn config_fields_of_other_types_are_ignored() {
    let store = Builder::new();
    let config = json!({
        "model_format": "gguf", "model_family": "gemma4", "model_families": ["gemma4", 3, "clip"],
        "model_type": "5.1B", "file_type": "Q4_K_M", "renderer": "gemma4", "parser": "gemma4",
        "requires": "0.20.0", "architecture": "amd64", "os": 12, "rootfs": { "type": "layers" },
        "draft": { "model_format": "gguf", "tensor_prefix": "draft.", "config": { "x": 1 } },
        "remote_host": "",
    });
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": store.config(&config),
        "layers": [store.blob("model", "w")],
    });
    store.manifest("m", &manifest);
    let files = store.resolve("m").unwrap();
    let config = files.config;
    assert_eq!(config.model_families, ["gemma4", "clip"]);
    assert_eq!(config.model_type.as_deref(), Some("5.1B"));
    assert_eq!(config.file_type.as_deref(), Some("Q4_K_M"));
    assert_eq!(
        (config.renderer.as_deref(), config.parser.as_deref()),
        (Some("gemma4"), Some("gemma4"))
    );
    assert_eq!((config.requires.as_deref(), config.os), (Some("0.20.0"), None));
    let draft = config.draft.unwrap();
    assert_eq!(draft.tensor_prefix.as_deref(), Some("draft."));
    assert_eq!(draft.config, Some(json!({ "x": 1 })));
    assert_eq!(files.id, rullama_store::Digest::of(manifest.to_string().as_bytes()));
}

#[test]
fn weights_in_several_files() {
    let store = Builder::new();
    let layers = [2, 3, 1].map(|number| {
        let mut layer = store.blob("model", format!("file {number}"));
        layer["name"] = format!("m-Q8_0-0000{number}-of-00003.gguf").into();
        layer
    });
    store.model("m", &layers);
    let files = store.resolve("m").unwrap();
    assert_eq!(files.model.path, store.path_of(&layers[2]), "the last one, as Ollama does");
    let shards: Vec<_> = files.shards.iter().map(|layer| layer.path.clone()).collect();
    assert_eq!(shards, [store.path_of(&layers[0]), store.path_of(&layers[1])]);
}

#[test]
fn manifests_are_found_even_if_they_are_broken() {
    let store = Builder::new();
    store.manifest_text("Alice/tuned:v1", "{");
    let (name, path) = store.store().manifest(&parse("alice/TUNED:v1")).unwrap();
    assert_eq!((name, path), (parse("Alice/tuned:v1"), store.manifest_path("Alice/tuned:v1")));
    let error = store.store().manifest(&parse("alice/tuned:v2")).unwrap_err();
    assert!(matches!(error, StoreError::NotFound { similar, .. } if similar == ["Alice/tuned:v1"]));
}

#[test]
fn blob_names_of_very_old_stores() {
    let store = Builder::new();
    let layer = store.blob("model", "w");
    store.model("m", std::slice::from_ref(&layer));
    let path = store.path_of(&layer);
    let old = path.with_file_name(layer["digest"].as_str().unwrap());
    assert!(old.to_str().unwrap().contains("sha256:"));
    fs::rename(path, &old).unwrap();
    if cfg!(windows) {
        assert!(store.resolve("m").is_err());
    } else {
        assert_eq!(store.resolve("m").unwrap().model.path, old);
    }
}

#[test]
fn digests_written_with_a_dash_or_in_capitals() {
    let store = Builder::new();
    let layer = store.blob("model", "w");
    let path = store.path_of(&layer);
    for digest in [
        layer["digest"].as_str().unwrap().replace(':', "-"),
        layer["digest"].as_str().unwrap().to_uppercase().replace("SHA", "sha"),
    ] {
        let mut layer = layer.clone();
        layer["digest"] = digest.into();
        store.model("m", &[layer]);
        let found = store.resolve("m").unwrap().model.path;
        assert_eq!(fs::canonicalize(found).unwrap(), fs::canonicalize(&path).unwrap());
    }
}

#[cfg(unix)]
#[test]
fn stores_and_blobs_through_links() {
    let store = Builder::new();
    let layer = store.blob("model", "w");
    store.model("m", std::slice::from_ref(&layer));
    let path = store.path_of(&layer);
    let elsewhere = store.root().join("big-disk");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let link = store.root().join("link-to-store");
    std::os::unix::fs::symlink(store.root(), &link).unwrap();
    let files = rullama_store::Store::open(&link).unwrap();
    let files = files.resolve(&"m".parse().unwrap()).unwrap();
    assert_eq!(fs::read(files.model.path).unwrap(), b"w");
}

#[test]
fn config_fields_are_optional() {
    let store = Builder::new();
    let layers = json!([store.blob("model", "GGUF")]);
    store.manifest("bare", &json!({ "layers": layers }));
    store.manifest("terse", &json!({ "config": store.config(&json!({})), "layers": layers }));
    for name in ["bare", "terse"] {
        assert_eq!(store.resolve(name).unwrap().model.size, 4, "{name}");
    }
}
