//! `rullama list`.

use rullama_store::Digest;
use serde_json::json;

use crate::{
    program::{has, rullama},
    store::Store,
};

#[test]
fn models_with_id_size_and_age() {
    let store = Store::with("gemma4:e2b");
    store.add("alice/tuned:v1");
    let text = store.rullama(&["list"]).stdout();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["NAME", "ID", "SIZE", "MODIFIED", "CAPABILITIES"]);
    assert_eq!(lines.count(), 2);
    let manifest = std::fs::read(store.manifest_path("gemma4:e2b")).unwrap();
    let id = Digest::of(&manifest);
    has(&text, &["gemma4:e2b", "alice/tuned:v1", id.short(), "just now"]);
    assert_eq!(store.rullama(&["ls"]).stdout(), text);

    let output = store.rullama(&["ls", "--json"]).json();
    assert_eq!(output["problems"], json!([]));
    let models = output["models"].as_array().unwrap();
    let gemma = models.iter().find(|model| model["name"] == "gemma4:e2b").unwrap();
    assert_eq!(gemma["full_name"], "registry.ollama.ai/library/gemma4:e2b");
    assert_eq!(gemma["id"], id.hex());
    assert!(gemma["modified_unix"].as_u64().unwrap() > 1_700_000_000);
    let parsed: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let layers = parsed["layers"].as_array().unwrap().iter().chain([&parsed["config"]]);
    let size: u64 = layers.map(|layer| layer["size"].as_u64().unwrap()).sum();
    assert_eq!(gemma["size"], size);
    has(&text, &[&format!("{:.0} KB", size as f64 / 1e3)]);
}

#[test]
fn the_newest_comes_first() {
    let store = Store::with("old");
    store.add("new");
    let day = std::time::Duration::from_secs(86_400);
    let file = std::fs::File::options().write(true).open(store.manifest_path("old")).unwrap();
    file.set_modified(std::time::SystemTime::now() - 3 * day).unwrap();
    let text = store.rullama(&["list"]).stdout();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["NAME", "new:latest", "old:latest"]);
    has(&text, &["3 days ago"]);
}

#[test]
fn an_empty_store_says_where_to_get_a_model() {
    let store = Store::empty();
    let text = store.rullama(&["list"]).stdout();
    has(&text, &["No models", store.root().to_str().unwrap(), "rullama pull", "--store"]);
    assert_eq!(store.rullama(&["list", "--json"]).json(), json!({ "models": [], "problems": [] }));
    has(&rullama(["list", "--store", "/no/such/store"]).stdout(), &["/no/such/store"]);
}

#[test]
fn a_broken_manifest_is_shown_as_a_problem() {
    let store = Store::with("good");
    store.manifest_text("bad", "{ this is not JSON");
    store.manifest(
        "sly",
        &json!({
            "config": { "digest": "sha256:../../../../etc/passwd", "size": 1 }, "layers": [],
        }),
    );
    let text = store.rullama(&["list"]).stdout();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    has(&line("bad:latest"), &["problem", "manifest"]);
    has(&line("sly:latest"), &["problem", "digest"]);
    assert!(!line("good:latest").contains("problem"));
    let output = store.rullama(&["list", "--json"]).json();
    let bad = output["models"].as_array().unwrap().iter().find(|m| m["name"] == "bad:latest");
    assert!(bad.unwrap()["problem"].as_str().unwrap().contains("manifest"));
}

#[test]
fn the_store_is_set_by_the_environment() {
    let store = Store::with("gemma4:e2b");
    let root = store.root().to_str().unwrap();
    for value in [root.to_owned(), format!("\"{root}\""), format!("  '{root}' ")] {
        let text = rullama(["list"]).env("OLLAMA_MODELS", &value).stdout();
        has(&text, &["gemma4:e2b"]);
    }
    // The option overrides the variable.
    let empty = Store::empty();
    let text = empty.rullama(&["list"]).env("OLLAMA_MODELS", root).stdout();
    has(&text, &["No models"]);
}

/// Folder names need not be UTF-8.
#[cfg(target_os = "linux")]
#[test]
fn stores_with_odd_names() {
    use std::os::unix::ffi::OsStrExt;
    let store = Store::with("gemma4:e2b");
    let odd = store.root().join(std::ffi::OsStr::from_bytes(b"odd \xFF\x1B[2J"));
    copy(&store.root().join("manifests"), &odd.join("manifests"));
    copy(&store.root().join("blobs"), &odd.join("blobs"));
    let run = |args: &[&str]| rullama(args).env("OLLAMA_MODELS", &odd);
    has(&run(&["list"]).stdout(), &["gemma4:e2b"]);
    for args in [&["show", "gemma4:e2b"][..], &["verify", "gemma4:e2b"]] {
        assert!(!run(args).stdout().contains('\x1b'));
        run(args).and(["--json"]).json();
    }
    std::fs::remove_dir_all(odd.join("manifests")).unwrap();
    assert!(!run(&["show", "gemma4:e2b"]).fails(3).contains('\x1b'));
}

#[test]
fn the_home_folder_is_searched() {
    let store = Store::with("gemma4:at-home");
    let program = rullama(["list"]);
    let models = program.home().join(".ollama").join("models");
    std::fs::create_dir_all(&models).unwrap();
    copy(&store.root().join("manifests"), &models.join("manifests"));
    has(&program.stdout(), &["gemma4:at-home"]);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
