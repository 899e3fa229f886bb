//! `/rullama/models`, `/api/tags`, `/api/version`.

use std::{fs, time::Duration};

use rullama_store::Digest;
use serde_json::{Value, json};

use crate::running::{Running, blob_path, weights};

#[test]
fn nothing_to_serve() {
    let server = Running::start();
    assert_eq!(server.get("/rullama/models").json(), json!({ "models": [] }));
    assert_eq!(server.get("/api/tags").json(), json!({ "models": [] }));
    // Clients refuse releases of Ollama before 0.13.4.
    assert_eq!(server.get("/api/version").json(), json!({ "version": "0.13.5" }));
    let head = server.ask("HEAD", "/api/version", &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn a_model_with_everything() {
    let server = Running::start();
    let files =
        ["model", "projector", "adapter", "draft"].map(|kind| (kind, weights("gemma4", kind)));
    let texts = [
        ("template", "{{ .Prompt }}"),
        ("system", "Be brief."),
        ("params", r#"{"temperature":0.7,"stop":["<turn|>"]}"#),
        ("messages", "[]"),
        ("license", "Terms"),
    ];
    let layers: Vec<Value> = files
        .iter()
        .map(|(kind, bytes)| server.store.blob(kind, bytes))
        .chain(texts.map(|(kind, text)| server.store.blob(kind, text)))
        .collect();
    server.add_layers("gemma4:e2b", &layers);
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_794_744_000);
    let manifest = server.store.manifest_path("gemma4:e2b");
    fs::File::options().write(true).open(manifest).unwrap().set_modified(time).unwrap();

    let config = r#"{"model_format":"gguf"}"#.len() as u64;
    let size = config + layers.iter().map(|layer| layer["size"].as_u64().unwrap()).sum::<u64>();
    let listed = files.each_ref().map(|(kind, bytes)| {
        json!({
            "kind": if *kind == "draft" { "drafter" } else { kind },
            "digest": Digest::of(bytes).to_string(),
            "size": bytes.len(),
            "url": blob_path(bytes),
        })
    });
    let want = json!({
        "name": "gemma4:e2b",
        "modified": "2026-11-15T12:00:00Z",
        "size": size,
        "layers": listed,
        "parameters": { "temperature": 0.7, "stop": ["<turn|>"] },
        "system": "Be brief.",
    });
    assert_eq!(server.models(), [want]);
    for (_, bytes) in &files {
        assert_eq!(server.get(&blob_path(bytes)).body, *bytes);
    }
    // Texts are in the list already.
    for (_, text) in &texts {
        server.get(&blob_path(text.as_bytes())).refused(404, "not_found");
    }
}

#[test]
fn as_ollama_lists_them() {
    let server = Running::start();
    let model = server.store.blob("model", weights("gemma4", "x"));
    let config = json!({
        "model_format": "gguf", "model_family": "gemma4", "model_families": ["gemma4"],
        "model_type": "5.1B", "file_type": "Q4_K_M",
    });
    let config = server.store.blob("config", config.to_string());
    server.store.manifest("gemma4:e2b", &json!({ "config": config, "layers": [model] }));
    let text = fs::read(server.store.manifest_path("gemma4:e2b")).unwrap();
    let tag = server.get("/api/tags").json()["models"][0].clone();
    assert_eq!((&tag["name"], &tag["model"]), (&json!("gemma4:e2b"), &json!("gemma4:e2b")));
    assert_eq!(tag["digest"], Digest::of(&text).hex());
    assert_eq!(tag["capabilities"], json!(["completion", "tools", "thinking"]));
    let details = json!({
        "parent_model": "", "format": "gguf", "family": "gemma4", "families": ["gemma4"],
        "parameter_size": "5.1B", "quantization_level": "Q4_K_M", "context_length": 4096,
    });
    assert_eq!(tag["details"], details);
    let modified = server.models()[0]["modified"].as_str().unwrap().to_owned();
    assert!(tag["modified_at"].as_str().unwrap().starts_with(modified.trim_end_matches('Z')));
}

#[test]
fn the_newest_comes_first() {
    let server = Running::start();
    for (name, age) in [("old", 300), ("new", 100), ("older", 500)] {
        server.add(name, &weights("gemma4", name));
        let file = fs::File::options().write(true).open(server.store.manifest_path(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    let order = json!(["new:latest", "old:latest", "older:latest"]);
    let names =
        |models: &[Value]| -> Value { models.iter().map(|model| model["name"].clone()).collect() };
    assert_eq!(names(&server.models()), order);
    assert_eq!(names(server.get("/api/tags").json()["models"].as_array().unwrap()), order);
}

/// What each kind of model can do comes from its files.
#[test]
fn capabilities() {
    let server = Running::start();
    let file = |architecture: &str, keys: &[&str]| {
        let writer = rullama_gguf::Writer::new().kv("general.architecture", architecture);
        keys.iter().fold(writer, |writer, key| writer.kv(*key, 2u32)).finish().unwrap()
    };
    let with = |name: &str, layers: &[(&str, Vec<u8>)]| {
        let layers: Vec<Value> =
            layers.iter().map(|(kind, bytes)| server.store.blob(kind, bytes)).collect();
        server.add_layers(name, &layers);
    };
    let model = || ("model", file("gemma4", &[]));
    with("text", &[model()]);
    with(
        "all",
        &[("model", file("gemma4", &["gemma4.vision.block_count", "gemma4.audio.block_count"]))],
    );
    with("eyes", &[model(), ("projector", file("clip", &["clip.vision.block_count"]))]);
    with("ears", &[model(), ("projector", file("clip", &["clip.audio.block_count"]))]);
    with("diffusion", &[("model", file("diffusion-gemma", &[]))]);
    with("embedding", &[("model", file("gemma-embedding", &[]))]);
    let plain = rullama_gguf::Writer::new().kv("general.architecture", "gemma4");
    let plain = plain.kv("tokenizer.chat_template", "{{ messages }}").finish().unwrap();
    with("plain", &[("model", plain)]);
    let tags = server.get("/api/tags").json();
    let of = |name: &str| {
        let name = format!("{name}:latest");
        let model = tags["models"].as_array().unwrap().iter().find(|tag| tag["name"] == name);
        model.unwrap_or_else(|| panic!("{name}"))["capabilities"].clone()
    };
    assert_eq!(of("text"), json!(["completion", "tools", "thinking"]));
    assert_eq!(of("all"), json!(["completion", "vision", "audio", "tools", "thinking"]));
    assert_eq!(of("eyes"), json!(["completion", "vision", "tools", "thinking"]));
    assert_eq!(of("ears"), json!(["completion", "audio", "tools", "thinking"]));
    assert_eq!(of("diffusion"), json!(["completion", "tools", "thinking"]));
    assert_eq!(of("embedding"), json!(["embedding"]));
    assert_eq!(of("plain"), json!(["completion"]));
}

/// All families that the engine runs are served, each with what it can do.
#[test]
fn capabilities_of_families() {
    let server = Running::start();
    for (name, architecture, tokens, can) in [
        ("gemma3", "gemma3", &["<start_of_turn>"][..], json!(["completion"])),
        ("function", "gemma3", &["<start_function_declaration>"], json!(["completion", "tools"])),
        ("smollm", "llama", &["<|im_start|>"], json!(["completion"])),
        ("llama3", "llama", &["<|start_header_id|>"], json!(["completion", "tools"])),
        ("qwen2", "qwen2", &["<|im_start|>"], json!(["completion"])),
        (
            "qwen3",
            "qwen3",
            &["<|im_start|>", "<think>"],
            json!(["completion", "tools", "thinking"]),
        ),
    ] {
        let tokens: rullama_gguf::StringArray = tokens.iter().collect();
        let file = rullama_gguf::Writer::new()
            .kv("general.architecture", architecture)
            .kv("tokenizer.ggml.tokens", tokens);
        server.add(name, &file.finish().unwrap());
        let tags = server.get("/api/tags").json();
        let name = format!("{name}:latest");
        let model = tags["models"].as_array().unwrap().iter().find(|tag| tag["name"] == name);
        assert_eq!(model.unwrap_or_else(|| panic!("{name}"))["capabilities"], can, "{name}");
    }
}

#[test]
fn other_families_are_left_out() {
    let server = Running::start();
    let gemma = server.add("gemma4", &weights("gemma4", "a"));
    let other = server.add("mamba", &weights("mamba", "b"));
    let nameless = server.add("nameless", &rullama_gguf::Writer::new().finish().unwrap());
    let names: Vec<Value> = server.models().iter().map(|model| model["name"].clone()).collect();
    assert_eq!(names, ["gemma4:latest"]);
    assert_eq!(server.get("/api/tags").json()["models"].as_array().unwrap().len(), 1);
    assert_eq!(server.get(&gemma).status, 200);
    server.get(&other).refused(404, "not_found");
    server.get(&nameless).refused(404, "not_found");
}

#[test]
fn what_is_broken_says_so() {
    let server = Running::start();
    let path = server.add("missing", &weights("gemma4", "a"));
    fs::remove_file(server.store.blob_path(&Digest::of(&weights("gemma4", "a")))).unwrap();
    server.store.manifest_text("no-json", "{ this is no JSON");
    server.add("no-gguf", b"no model at all");
    let models = server.models();
    assert_eq!(models.len(), 3);
    for model in &models {
        let error = model["error"].as_str().unwrap();
        assert!(error.contains("llama pull"), "{error}");
        assert_eq!(model["layers"], json!([]), "{model}");
    }
    assert_eq!(server.get("/api/tags").json(), json!({ "models": [] }));
    server.get(&path).refused(404, "not_found");
}

/// Whole, but nothing of ours: neither served nor worth a word.
#[test]
fn models_without_local_weights_are_left_out() {
    let server = Running::start();
    for (name, config) in [
        ("cloud", r#"{"remote_host":"https://example.org","remote_model":"x"}"#),
        ("mlx", r#"{"model_format":"safetensors"}"#),
    ] {
        let config = server.store.blob("config", config);
        server.store.manifest(name, &json!({ "config": config, "layers": [] }));
    }
    assert!(server.models().is_empty());
}

#[test]
fn models_come_and_go_while_it_runs() {
    let server = Running::start();
    let bytes = weights("gemma4", "a");
    server.get(&blob_path(&bytes)).refused(404, "not_found");
    let path = server.add("gemma4", &bytes);
    assert_eq!(server.get(&path).status, 200);
    // The blob stays on disk, but nobody names it any more.
    fs::remove_file(server.store.manifest_path("gemma4")).unwrap();
    server.get(&path).refused(404, "not_found");
    assert!(server.models().is_empty());
}

#[test]
fn the_first_store_that_has_a_name_is_meant() {
    let second = tempfile::TempDir::new().unwrap();
    let other = rullama_testkit::StoreFolder::new(second.path());
    let server = Running::with(|options| options.stores.push(second.path().to_owned()));
    let mine = server.add("gemma4", &weights("gemma4", "mine"));
    let theirs = weights("gemma4", "theirs");
    let layers = [other.blob("model", &theirs)];
    other.manifest("gemma4", &json!({ "layers": layers }));
    assert_eq!(server.models().len(), 1);
    assert_eq!(server.models()[0]["layers"][0]["url"], mine);
    server.get(&blob_path(&theirs)).refused(404, "not_found");
}
