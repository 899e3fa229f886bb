//! Models by name in a store.

use serde_json::{Value, json};

use crate::{
    program::{has, rullama},
    store::Store,
};

#[test]
fn names_in_all_their_forms() {
    let store = Store::with("gemma4");
    store.add("alice/Tuned:v1");
    store.add("hf.co/org/Repo-GGUF:Q4_K_M");
    let check = |name: &str, stored: &str| {
        let output = store.rullama(&["show", name, "--json"]).json();
        assert_eq!(output["store"]["name"], stored, "{name}");
        assert_eq!(output["name"], "Micro E2B");
    };
    check("gemma4", "gemma4:latest");
    check("gemma4:latest", "gemma4:latest");
    check("library/gemma4", "gemma4:latest");
    check("registry.ollama.ai/library/gemma4:latest", "gemma4:latest");
    check("GEMMA4:Latest", "gemma4:latest");
    check("alice/Tuned:v1", "alice/Tuned:v1");
    check("alice/tuned:V1", "alice/Tuned:v1");
    check("hf.co/org/Repo-GGUF:Q4_K_M", "hf.co/org/Repo-GGUF:Q4_K_M");
    check("HF.co/org/repo-gguf:q4_k_m", "hf.co/org/Repo-GGUF:Q4_K_M");
}

#[test]
fn unknown_names_suggest_similar_ones() {
    let store = Store::with("gemma4:e2b");
    store.add("gemma4:26b");
    let error = store.rullama(&["show", "gemma4"]).fails(3);
    has(&error, &["gemma4:latest", "did you mean", "gemma4:e2b", "gemma4:26b"]);
    has(&store.rullama(&["tokenize", "gema4:e2b", "x"]).fails(3), &["did you mean gemma4:e2b"]);
    let error = store.rullama(&["verify", "something-else"]).fails(3);
    has(&error, &["something-else:latest", store.root().to_str().unwrap(), "rullama pull"]);
}

#[test]
fn invalid_names_are_refused() {
    let store = Store::with("gemma4");
    for name in ["gemma4:", "a b", "a/b/c/d/e", "gemma4:../x", "x:y:z"] {
        let error = store.rullama(&["show", name]).fails(1);
        has(&error, &["not a model name"]);
    }
    // It has the form of a path, and the file does not exist.
    store.rullama(&["show", "../gemma4"]).fails(3);
}

#[test]
fn layers_of_every_kind_are_shown() {
    let store = Store::with("gemma4:e2b");
    let text = store.rullama(&["show", "gemma4:e2b"]).stdout();
    has(&text, &["projector", "adapter", "draft model", "template", "temperature", "0.7"]);
    has(&text, &["Be brief.", "First Licence", "Second Licence"]);
    assert!(!text.contains('\x1b') && !text.contains("with terms"), "{text}");

    let output = &store.rullama(&["show", "gemma4:e2b", "--json"]).json()["store"];
    let kinds: Vec<&Value> =
        output["layers"].as_array().unwrap().iter().map(|layer| &layer["kind"]).collect();
    for kind in ["config", "model", "projector", "adapter", "draft model", "template", "license"] {
        assert!(kinds.contains(&&json!(kind)), "{kind}: {kinds:?}");
    }
    assert_eq!(kinds.len(), 11);
    assert_eq!(output["template"], "{{ .Prompt }}");
    assert_eq!(output["system"], "Be brief.\nBe \x1b[31mkind.");
    assert_eq!(output["params"], json!({ "temperature": 0.7, "stop": ["<turn|>"] }));
    assert_eq!(output["messages"], json!([{ "role": "user", "content": "Hi" }]));
    assert_eq!(output["licenses"].as_array().unwrap().len(), 2);
    assert_eq!((&output["renderer"], &output["parser"]), (&json!("gemma4"), &json!("gemma4")));
}

#[test]
fn the_other_commands_take_names_too() {
    let store = Store::with("gemma4:e2b");
    let output = store.rullama(&["tokenize", "gemma4:e2b", "--json", "a the"]).json();
    assert_eq!(output, json!({ "ids": [435, 481], "pieces": ["a", "▁the"] }));
    assert_eq!(store.rullama(&["detokenize", "gemma4:e2b", "435", "481"]).stdout(), "a the\n");
    let by_variable = rullama(["tokenize", "gemma4:e2b", "--json", "a"]);
    let output = by_variable.env("OLLAMA_MODELS", store.root()).json();
    assert_eq!(output["ids"], json!([435]));
}

#[test]
fn a_missing_blob_says_what_to_do() {
    let store = Store::with("gemma4:e2b");
    let (_, weights) = store.weights();
    std::fs::remove_file(&weights).unwrap();
    for command in ["show", "verify"] {
        let error = store.rullama(&[command, "gemma4:e2b"]).fails(4);
        has(&error, &[weights.to_str().unwrap(), "missing", "rullama pull gemma4:e2b"]);
    }
    std::fs::write(weights.with_extension("-partial"), "").unwrap();
    let partial = format!("{}-partial", weights.to_str().unwrap());
    std::fs::write(partial, "").unwrap();
    has(&store.rullama(&["show", "gemma4:e2b"]).fails(4), &["did not finish"]);
}

#[test]
fn a_blob_of_the_wrong_length_is_refused() {
    let store = Store::with("gemma4:e2b");
    let (_, weights) = store.weights();
    std::fs::write(&weights, b"GGUF").unwrap();
    has(&store.rullama(&["show", "gemma4:e2b"]).fails(4), &["4 bytes", "rullama pull gemma4:e2b"]);
}

#[test]
fn digests_cannot_escape_the_store() {
    let store = Store::empty();
    let secret = store.root().join("x");
    std::fs::write(&secret, "secret").unwrap();
    for digest in ["sha256:../../x", "sha256:../x", "sha256-../x", "../x", "sha256:", ""] {
        let good = store.blob("model", "weights");
        let bad = json!({ "mediaType": good["mediaType"], "digest": digest, "size": 6 });
        let config = store.blob("config", r#"{"model_format":"gguf"}"#);
        store.manifest("sly", &json!({ "config": config, "layers": [bad] }));
        for command in ["show", "verify"] {
            let error = store.rullama(&[command, "sly"]).fails(4);
            has(&error, &["manifest", "digest"]);
            assert!(!error.contains("secret"), "{error}");
        }
    }
}

#[test]
fn remote_and_unsupported_models_are_refused() {
    let store = Store::empty();
    let check = |config: &str, part: &str| {
        store.manifest("far", &json!({ "config": store.blob("config", config), "layers": [] }));
        has(&store.rullama(&["show", "far"]).fails(4), &[part]);
    };
    check(r#"{"remote_host":"https://far.example","remote_model":"x"}"#, "remote model");
    check(r#"{"model_format":"safetensors"}"#, "safetensors");
    check(r#"{"model_format":"gguf"}"#, "no weights");
}
