//! Pulls from Hugging Face.

use rullama_gguf::{DType, Writer};
use rullama_pull::{PullError, PullOptions, Secret};
use rullama_store::{Digest, ModelName};
use serde_json::{Value, json};

use crate::{
    registry::{Registry, noise},
    setup::{Setup, options},
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A small file of an architecture.
pub(crate) fn gguf(kind: &str, architecture: &str, seed: u64) -> Vec<u8> {
    Writer::new()
        .kv("general.architecture", architecture)
        .kv("general.type", kind)
        .kv("general.file_type", 7u32)
        .tensor("x", &[64], DType::F32, noise(256, seed))
        .finish()
        .unwrap()
}

/// A hub without the registry protocol, with one repository.
fn hub(files: &[(&str, &[u8])]) -> (Registry, Setup) {
    let hub = Registry::start();
    let refs = json!({ "branches": [
        { "name": "other", "targetCommit": "f".repeat(40) },
        { "name": "main", "targetCommit": COMMIT },
    ] });
    hub.put("/api/models/user/repo/refs", refs.to_string());
    let tree: Vec<Value> = files.iter().map(|(path, content)| entry(&hub, path, content)).collect();
    hub.put(&tree_path(), json!(tree).to_string());
    let options = PullOptions {
        hf_endpoint: Some(hub.url()),
        hf_token: Some(Secret::new("hf_secret")),
        ..options()
    };
    (hub, Setup::with(options))
}

fn tree_path() -> String {
    format!("/api/models/user/repo/tree/{COMMIT}")
}

fn entry(hub: &Registry, path: &str, content: &[u8]) -> Value {
    hub.put(&format!("/user/repo/resolve/{COMMIT}/{path}"), content);
    let mut entry = json!({ "type": "file", "path": path, "size": content.len(), "oid": "00" });
    if path.ends_with(".gguf") {
        entry["lfs"] = json!({ "oid": Digest::of(content).hex(), "size": content.len() });
    }
    entry
}

fn name(text: &str) -> ModelName {
    text.parse().unwrap()
}

#[test]
fn the_registry_protocol_is_tried_first() {
    let (hub, setup) = hub(&[]);
    let weights = gguf("model", "gemma4", 1);
    hub.publish("user/repo", "Q8_0", &[("model", &weights)]);
    setup.pull(&name("huggingface.co/user/repo:Q8_0")).unwrap();
    setup.assert_whole(&name("hf.co/user/repo:Q8_0"), &weights);
    let log = hub.take_log();
    assert!(log.iter().all(|request| request.path.starts_with("/v2/")));
    assert!(log.iter().all(|request| request.authorization() == Some("Bearer hf_secret")));
}

#[test]
fn the_hub_api_is_the_fallback() {
    let (small, large) = (gguf("model", "gemma4", 2), gguf("model", "gemma4", 3));
    let projector = gguf("mmproj", "clip", 4);
    let (hub, setup) = hub(&[
        ("README.md", b"text"),
        ("m-Q4_K_M.gguf", &small),
        ("m-Q8_0.gguf", &large),
        ("mmproj-F16.gguf", &projector),
        ("system", b"Be brief."),
        ("params", br#"{"temperature":0.5}"#),
    ]);
    let pulled = name("hf.co/user/repo:q8_0");
    let lines = setup.pull_lines(&pulled);
    assert_eq!(lines.last().map(String::as_str), Some("success"));
    setup.assert_whole(&pulled, &large);
    let files = setup.store().resolve(&pulled).unwrap();
    assert_eq!(std::fs::read(&files.projectors[0].path).unwrap(), projector);
    assert_eq!(files.system.as_deref(), Some("Be brief."));
    let params = files.params.unwrap();
    assert_eq!(json!(params), json!({ "stop": ["<turn|>"], "temperature": 0.5 }));
    let config = &files.config;
    assert_eq!(config.model_family.as_deref(), Some("gemma4"));
    assert_eq!(config.file_type.as_deref(), Some("Q8_0"));
    assert_eq!(config.renderer.as_deref(), Some("gemma4"));
    assert!(hub.take_log().iter().all(|r| r.authorization() == Some("Bearer hf_secret")));

    setup.pull(&name("hf.co/user/repo")).unwrap();
    setup.assert_whole(&name("hf.co/user/repo:latest"), &small);
}

#[test]
fn storage_on_another_host_gets_no_token() {
    let weights = gguf("model", "llama", 5);
    let (hub, setup) = hub(&[("m-Q8_0.gguf", &weights)]);
    let storage = Registry::start();
    storage.put(&format!("/user/repo/resolve/{COMMIT}/m-Q8_0.gguf"), weights.clone());
    hub.faults().redirect = Some(storage.url());
    hub.faults().redirect_status = Some(302);
    setup.pull(&name("hf.co/user/repo")).unwrap();
    setup.assert_whole(&name("hf.co/user/repo"), &weights);
    let log = storage.take_log();
    assert!(!log.is_empty() && log.iter().all(|request| request.authorization().is_none()));
}

#[test]
fn digests_from_headers_if_the_listing_has_none() {
    let weights = gguf("model", "llama", 6);
    let (hub, setup) = hub(&[]);
    let mut listed = entry(&hub, "m.gguf", &weights);
    listed.as_object_mut().unwrap().remove("lfs");
    hub.put(&tree_path(), json!([listed]).to_string());
    let error = setup.pull(&name("hf.co/user/repo")).unwrap_err();
    assert!(matches!(error, PullError::NoDigest { .. }), "{error}");
    let path = format!("/user/repo/resolve/{COMMIT}/m.gguf");
    hub.put_header(&path, "X-Linked-Etag", &format!("\"{}\"", Digest::of(&weights).hex()));
    hub.put_header(&path, "X-Linked-Size", &weights.len().to_string());
    setup.pull(&name("hf.co/user/repo")).unwrap();
    setup.assert_whole(&name("hf.co/user/repo"), &weights);
}

#[test]
fn listings_of_several_pages() {
    let weights = gguf("model", "llama", 7);
    let (hub, setup) = hub(&[("README.md", b"")]);
    let next = format!("{}/page2", hub.url());
    hub.put_header(&tree_path(), "Link", &format!("<{next}>; rel=\"next\""));
    hub.put("/page2", json!([entry(&hub, "m.gguf", &weights)]).to_string());
    setup.pull(&name("hf.co/user/repo")).unwrap();
    setup.assert_whole(&name("hf.co/user/repo"), &weights);
    // An endless list.
    hub.put_header("/page2", "Link", "</page2>; rel=\"next\"");
    let error = setup.pull(&name("hf.co/user/repo")).unwrap_err();
    assert!(matches!(error, PullError::BadResponse { .. }), "{error}");
}

#[test]
fn split_weights_are_pulled_together() {
    let shards: Vec<Vec<u8>> = (0..3).map(|n| gguf("model", "llama", 10 + n)).collect();
    let paths = [1, 2, 3].map(|n| format!("F32/m-F32-0000{n}-of-00003.gguf"));
    let files: Vec<(&str, &[u8])> =
        paths.iter().zip(&shards).map(|(path, shard)| (path.as_str(), shard.as_slice())).collect();
    let (_hub, setup) = hub(&files);
    let pulled = name("hf.co/user/repo:F32");
    setup.pull(&pulled).unwrap();
    setup.assert_whole(&pulled, &shards[0]);
    let others = setup.store().resolve(&pulled).unwrap().shards;
    let read: Vec<Vec<u8>> = others.iter().map(|l| std::fs::read(&l.path).unwrap()).collect();
    assert_eq!(read, shards[1..]);
}

#[test]
fn errors_name_missing_files() {
    let weights = gguf("model", "llama", 8);
    let (hub, setup) = hub(&[("m-Q8_0.gguf", &weights)]);
    let unknown = (400, r#"{"error":"unknown tag"}"#.to_owned());
    hub.faults().status.insert("/v2/user/repo/manifests/Q2_K".into(), unknown);
    let error = setup.pull(&name("hf.co/user/repo:Q2_K")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Q2_K") && text.contains("m-Q8_0.gguf"), "{text}");
    let error = setup.pull(&name("hf.co/user/nothing")).unwrap_err();
    assert!(matches!(error, PullError::NotFound { .. }), "{error}");
    setup.assert_no_model();
}

#[test]
fn files_that_are_not_gguf_are_rejected() {
    let (_hub, setup) = hub(&[("m.gguf", b"not gguf at all")]);
    let error = setup.pull(&name("hf.co/user/repo")).unwrap_err();
    assert!(matches!(error, PullError::BadGguf { .. }), "{error}");
    setup.assert_no_model();
}
