//! Files the user named.

use std::{fs, path::Path};

use rullama_server::{Options, PlainFile, Server, ServerError};
use rullama_store::Digest;
use serde_json::json;
use tempfile::TempDir;

use crate::running::{Running, weights};

fn serve(files: &[(&str, &Path)]) -> Running {
    Running::with(|options| {
        let files =
            files.iter().map(|&(name, path)| PlainFile { name: name.into(), path: path.into() });
        options.files = files.collect();
    })
}

#[test]
fn a_file_is_listed_and_served() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("my model #1.gguf");
    let bytes = weights("gemma4", "mine");
    fs::write(&path, &bytes).unwrap();
    let server = serve(&[("demo:1/x", &path)]);
    server.add("stored", &weights("gemma4", "stored"));
    let models = server.models();
    assert_eq!(models.len(), 2);
    let model = &models[0];
    let digest = Digest::of(&bytes);
    let url = "/rullama/files/demo%3A1%2Fx/my%20model%20%231.gguf";
    let layer =
        json!({ "kind": "model", "digest": digest.to_string(), "size": bytes.len(), "url": url });
    assert_eq!(model["layers"], json!([layer]));
    assert_eq!((&model["name"], &model["size"]), (&json!("demo:1/x"), &json!(bytes.len())));
    assert_eq!((&model["parameters"], &model["system"]), (&json!({}), &json!(null)));
    assert!(model.get("error").is_none());

    let answer = server.ask("GET", url, &[("Range", "bytes=0-3")]);
    assert_eq!((answer.status, answer.body.as_slice()), (206, &b"GGUF"[..]));
    let etag = format!("\"sha256-{}\"", digest.hex());
    assert_eq!(answer.header("etag"), etag);
    assert_eq!(answer.header("cache-control"), "private, no-cache");
    assert_eq!(server.ask("GET", url, &[("If-None-Match", &etag)]).status, 304);
    assert_eq!(server.get(url).body, bytes);
    let tags = server.get("/api/tags").json();
    let tag =
        tags["models"].as_array().unwrap().iter().find(|tag| tag["name"] == "demo:1/x").unwrap();
    assert_eq!(tag["digest"], digest.hex());
    assert_eq!(tag["details"]["family"], "gemma4");
    for path in [
        "/rullama/files/demo/x.gguf",
        "/rullama/files/demo%3A1%2Fx/other.gguf",
        "/rullama/files/demo",
    ] {
        server.get(path).refused(404, "not_found");
    }
}

#[test]
fn a_file_that_changes_is_another_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.gguf");
    fs::write(&path, weights("gemma4", "before")).unwrap();
    let server = serve(&[("a", &path)]);
    let before = server.get("/rullama/files/a/a.gguf").header("etag").to_owned();
    let after = weights("gemma4", "after, and longer");
    fs::write(&path, &after).unwrap();
    let answer = server.ask(
        "GET",
        "/rullama/files/a/a.gguf",
        &[("If-Range", &before), ("Range", "bytes=0-1")],
    );
    assert_eq!((answer.status, &answer.body), (200, &after));
    assert!(answer.header("etag").len() > 2 && !answer.header("etag").contains("sha256"));
    let model = &server.models()[0];
    assert_eq!(model["layers"][0]["digest"], json!(null));
    assert_eq!(model["size"], after.len());

    fs::remove_file(&path).unwrap();
    server.get("/rullama/files/a/a.gguf").refused(404, "not_found");
    let model = &server.models()[0];
    assert_eq!(model["layers"], json!([]));
    assert!(model["error"].as_str().unwrap().contains("a.gguf"));
}

/// The name the user gave goes before the same name in a store.
#[test]
fn a_file_goes_before_the_store() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.gguf");
    fs::write(&path, weights("gemma4", "mine")).unwrap();
    let server = serve(&[("gemma4:latest", &path)]);
    server.add("gemma4", &weights("gemma4", "stored"));
    let models = server.models();
    assert_eq!(models.len(), 1);
    assert_eq!(models[0]["layers"][0]["url"], "/rullama/files/gemma4%3Alatest/a.gguf");
}

/// Hashing it would keep the user waiting.
#[test]
fn a_large_file_has_no_digest() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("large.gguf");
    let bytes = weights("gemma4", "large");
    fs::write(&path, &bytes).unwrap();
    // A hole: it takes no space on disk.
    let len = (256 << 20) + 1;
    fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
    let server = serve(&[("large", &path)]);
    let layer = &server.models()[0]["layers"][0];
    assert_eq!((&layer["digest"], &layer["size"]), (&json!(null), &json!(len)));
    let answer = server.ask("GET", "/rullama/files/large/large.gguf", &[("Range", "bytes=-1")]);
    assert_eq!((answer.status, answer.body.as_slice()), (206, &[0][..]));
    assert_eq!(answer.header("content-range"), format!("bytes {}-{}/{len}", len - 1, len - 1));
    let again = server.ask("HEAD", "/rullama/files/large/large.gguf", &[]);
    assert!(!answer.header("etag").is_empty());
    assert_eq!(answer.header("etag"), again.header("etag"));
}

#[test]
fn files_that_cannot_be_served() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        PlainFile { name: "x".into(), path }
    };
    let good = write("good.gguf", &weights("gemma4", "x"));
    let other = write("mamba.gguf", &weights("mamba", "x"));
    let text = write("text.gguf", b"no model");
    let missing = PlainFile { name: "x".into(), path: folder.path().join("missing.gguf") };
    let bind = |files: &[&PlainFile]| {
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.files = files.iter().map(|&file| file.clone()).collect();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(Server::bind(options)).map(|_| ())
    };
    bind(&[&good]).unwrap();
    assert!(
        matches!(bind(&[&other]), Err(ServerError::OtherFamily { architecture, .. }) if architecture == "mamba")
    );
    assert!(matches!(bind(&[&text]), Err(ServerError::Gguf { .. })));
    assert!(matches!(bind(&[&missing]), Err(ServerError::Source(_))));
    assert!(matches!(bind(&[&good, &good]), Err(ServerError::SameName { name }) if name == "x"));
}
