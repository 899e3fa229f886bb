//! Invalid manifests, missing blobs, unsupported models.

use std::fs;

use rullama_store::{LayerKind, ManifestProblem, StoreError};
use serde_json::{Value, json};

use crate::builder::Builder;

/// The problem of a manifest with this text.
fn problem(text: &str) -> ManifestProblem {
    let store = Builder::new();
    store.manifest_text("m", text);
    match store.resolve("m").unwrap_err() {
        StoreError::BadManifest { path, problem } => {
            assert_eq!(path, store.manifest_path("m"));
            problem
        }
        error => panic!("{text}: {error}"),
    }
}

fn manifest_with(field: &str, value: Value) -> String {
    let digest = format!("sha256:{}", "a".repeat(64));
    let config = json!({ "mediaType": "x", "digest": digest, "size": 2 });
    let mut layer = json!({
        "mediaType": "application/vnd.ollama.image.model", "digest": digest, "size": 2
    });
    layer[field] = value;
    json!({ "config": config, "layers": [layer] }).to_string()
}

#[test]
fn invalid_json_is_refused() {
    for text in ["", "{", "[]", "null", "{} {}", r#"{"layers":{}}"#, r#"{"layers":[7]}"#, "\u{1}"] {
        assert!(matches!(problem(text), ManifestProblem::Json(_)), "{text}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"config":{deep}}}"#);
    assert!(matches!(problem(&deep), ManifestProblem::Json(_)));
    for text in ["{}", r#"{"config":null,"layers":null}"#] {
        assert!(matches!(problem(text), ManifestProblem::NoConfig), "{text}");
    }
}

#[test]
fn digests_that_escape_the_store_are_refused() {
    let hex = "a".repeat(64);
    for digest in [
        json!("../../../../etc/passwd"),
        json!("sha256:../../../../etc/passwd"),
        json!(format!("sha256-/{}", &hex[1..])),
        json!(format!("sha256:{hex}/../../secret")),
        json!(format!("sha256:..{}", &hex[2..])),
        json!(format!("sha256:{}", &hex[1..])),
        json!(""),
        json!(7),
        Value::Null,
    ] {
        let problem = problem(&manifest_with("digest", digest.clone()));
        let ManifestProblem::BadDigest { kind: LayerKind::Model, digest: shown } = &problem else {
            panic!("{digest}: {problem}")
        };
        assert_eq!(shown, digest.as_str().unwrap_or_default());
    }
}

#[test]
fn invalid_sizes_are_refused() {
    for size in [json!(-1), json!(1.5), json!("2"), json!(1e300), Value::Null] {
        let problem = problem(&manifest_with("size", size.clone()));
        assert!(matches!(problem, ManifestProblem::BadSize { kind: LayerKind::Model }), "{size}");
    }
}

#[test]
fn manifests_that_are_too_large() {
    let layers = vec![json!({}); 20_000];
    let text = json!({ "config": {}, "layers": layers }).to_string();
    assert!(matches!(problem(&text), ManifestProblem::TooManyLayers { count: 20_000, .. }));

    let store = Builder::new();
    store.manifest_text("m", &" ".repeat((4 << 20) + 1));
    let error = store.resolve("m").unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { max: 0x40_0000, .. }), "{error}");
}

#[test]
fn missing_blobs() {
    let store = Builder::new();
    let layer = store.blob("model", "weights");
    store.model("m", std::slice::from_ref(&layer));
    let path = store.path_of(&layer);
    fs::remove_file(&path).unwrap();
    for unfinished in [false, true] {
        if unfinished {
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::write(path.with_file_name(format!("{name}-partial")), "weig").unwrap();
        }
        let error = store.resolve("m").unwrap_err();
        let StoreError::MissingBlob { kind: LayerKind::Model, path: p, partial, .. } = &error
        else {
            panic!("{error}")
        };
        assert_eq!((p, *partial), (&path, unfinished));
        assert!(error.to_string().contains("`rullama pull m:latest`"), "{error}");
    }
    fs::create_dir(&path).unwrap();
    assert!(matches!(store.resolve("m"), Err(StoreError::Unreadable { .. })));
}

#[test]
fn blobs_of_another_length() {
    let store = Builder::new();
    let layer = store.blob("projector", "weights");
    store.model("m", &[store.blob("model", "w"), layer.clone()]);
    fs::write(store.path_of(&layer), "weig").unwrap();
    let error = store.resolve("m").unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::WrongSize { kind: LayerKind::Projector, expected: 7, actual: 4, .. }
        ),
        "{error}"
    );
}

#[test]
fn a_superseded_blob_may_be_missing() {
    let store = Builder::new();
    let old = store.blob("template", "old");
    store.model("m", &[store.blob("model", "w"), old.clone(), store.blob("template", "new")]);
    fs::remove_file(store.path_of(&old)).unwrap();
    assert_eq!(store.resolve("m").unwrap().template.as_deref(), Some("new"));
}

/// The error for a model with this config.
fn config_error(config: &Value, layers: &[&str]) -> StoreError {
    let store = Builder::new();
    let layers: Vec<Value> = layers.iter().map(|kind| store.blob(kind, "x")).collect();
    store.manifest("m", &json!({ "config": store.config(config), "layers": layers }));
    store.resolve("m").unwrap_err()
}

#[test]
fn unsupported_models() {
    let error = config_error(&json!({ "model_format": "safetensors" }), &["tensor", "json"]);
    assert!(
        matches!(&error, StoreError::NotGguf { format, .. } if format == "safetensors"),
        "{error}"
    );
    let error = config_error(&json!({}), &["tensor"]);
    assert!(matches!(error, StoreError::NoWeights { .. }), "{error}");
    let error = config_error(&json!({ "model_format": "gguf" }), &["template"]);
    assert!(matches!(error, StoreError::NoWeights { .. }), "{error}");
    let remote = json!({ "remote_host": "https://example.org", "remote_model": "big" });
    let error = config_error(&remote, &[]);
    assert!(
        matches!(&error, StoreError::Remote { host, .. } if host.contains("example")),
        "{error}"
    );
    let error = config_error(&json!([1]), &["model"]);
    assert!(matches!(error, StoreError::BadJson { kind: LayerKind::Config, .. }), "{error}");
}

/// The error for a model with its weights and this layer.
fn layer_error(kind: &str, content: &[u8]) -> StoreError {
    let store = Builder::new();
    store.model("m", &[store.blob("model", "w"), store.blob(kind, content)]);
    store.resolve("m").unwrap_err()
}

#[test]
fn invalid_texts_are_refused() {
    for kind in ["template", "system"] {
        let error = layer_error(kind, b"\xff\xfe");
        assert!(matches!(error, StoreError::BadText { .. }), "{error}");
    }
    for (kind, content) in
        [("params", "[1]"), ("params", "{"), ("messages", "{}"), ("messages", "")]
    {
        let error = layer_error(kind, content.as_bytes());
        assert!(matches!(error, StoreError::BadJson { .. }), "{kind} {content}: {error}");
    }
    for kind in ["template", "license", "params"] {
        let error = layer_error(kind, &vec![b' '; (8 << 20) + 1]);
        assert!(matches!(error, StoreError::TooLarge { max: 0x80_0000, .. }), "{error}");
    }
}
