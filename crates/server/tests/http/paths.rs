//! Paths that try to leave the store, and blobs nobody named.

use rullama_store::Digest;
use serde_json::json;

use crate::running::{Running, blob_path, weights};

#[test]
fn no_path_leaves_the_store() {
    let server = Running::start();
    let path = server.add("gemma4", &weights("gemma4", "a"));
    std::fs::write(server.store.root().join("secret"), "secret").unwrap();
    let hex = &path[path.len() - 64..];
    let tricks = [
        "/rullama/blobs/".to_owned(),
        "/rullama/blobs/..".into(),
        "/rullama/blobs/../secret".into(),
        "/rullama/blobs/%2e%2e/secret".into(),
        "/rullama/blobs/..%2fsecret".into(),
        "/rullama/blobs/%2e%2e%2fsecret".into(),
        "/rullama/blobs/..%5csecret".into(),
        "/rullama/blobs/%00".into(),
        "/rullama/blobs/%ff".into(),
        "/rullama/blobs//etc/passwd".into(),
        "/rullama/blobs/%2fetc%2fpasswd".into(),
        format!("/rullama/blobs/{hex}"),
        format!("/rullama/blobs/sha256:{hex}"),
        format!("/rullama/blobs/sha256-{}", &hex[1..]),
        format!("/rullama/blobs/sha256-{hex}0"),
        format!("/rullama/blobs/sha256-{}g", &hex[1..]),
        format!("/rullama/blobs/sha256-{hex}/"),
        format!("/rullama/blobs/sha256-{hex}/.."),
        format!("/rullama/blobs/sha256-{hex}-partial"),
        format!("/rullama/blobs/x/../sha256-{hex}"),
        format!("/rullama/blobs/sha256-..%2f{}", &hex[5..]),
        "/rullama/files/../../secret".into(),
        "/rullama/files/x/..%2f..%2fsecret".into(),
        "/rullama/manifests".into(),
        "/rullama".into(),
        "/api/".into(),
        "/api/nothing/secret".into(),
    ];
    for trick in &tricks {
        server.get(trick).refused(404, "not_found");
    }
    for trick in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "//etc/passwd.txt",
        "/.git/config",
    ] {
        server.get(trick).refused(404, "not_found");
    }
    assert_eq!(server.get(&path).status, 200);
}

#[test]
fn a_blob_that_no_manifest_names() {
    let server = Running::start();
    server.add("gemma4", &weights("gemma4", "a"));
    let bytes = weights("gemma4", "nobody's");
    server.store.blob("model", &bytes);
    assert!(server.store.blob_path(&Digest::of(&bytes)).is_file());
    server.get(&blob_path(&bytes)).refused(404, "not_found");
}

#[cfg(unix)]
#[test]
fn links_out_of_the_store_are_not_followed() {
    use std::os::unix::fs::symlink;
    let server = Running::start();
    let bytes = weights("gemma4", "outside");
    let outside = server.folder.path().join("outside.gguf");
    std::fs::write(&outside, &bytes).unwrap();
    let path = server.add("sly", &bytes);
    assert_eq!(server.get(&path).status, 200);
    let blob = server.store.blob_path(&Digest::of(&bytes));
    std::fs::remove_file(&blob).unwrap();
    symlink(&outside, &blob).unwrap();
    // The list before the link appeared is of no use, nor is the one after.
    server.get(&path).refused(404, "not_found");
    let model = &server.models()[0];
    assert!(model["error"].as_str().unwrap().contains("out of the store"), "{model}");
    assert_eq!(model["layers"], json!([]));
    server.get(&path).refused(404, "not_found");
}

/// What a system prompt says is part of the list, so its file counts too.
#[cfg(unix)]
#[test]
fn texts_from_outside_are_not_shown() {
    let server = Running::start();
    let secret = "the secret\n";
    let outside = server.folder.path().join("secret");
    std::fs::write(&outside, secret).unwrap();
    let model = server.store.blob("model", weights("gemma4", "a"));
    let system = server.store.blob("system", secret);
    server.add_layers("sly", &[model, system]);
    assert_eq!(server.models()[0]["system"], secret);
    let blob = server.store.blob_path(&Digest::of(secret.as_bytes()));
    std::fs::remove_file(&blob).unwrap();
    std::os::unix::fs::symlink(&outside, &blob).unwrap();
    let answer = String::from_utf8(server.get("/rullama/models").body).unwrap();
    assert!(answer.contains("out of the store") && !answer.contains("the secret"), "{answer}");
}

/// People move stores to another disk.
#[cfg(unix)]
#[test]
fn the_store_itself_may_be_a_link() {
    let folder = tempfile::TempDir::new().unwrap();
    let link = folder.path().join("link");
    let server = Running::with(|options| options.stores = vec![link.clone()]);
    let bytes = weights("gemma4", "linked");
    let path = server.add("gemma4", &bytes);
    std::os::unix::fs::symlink(server.store.root(), &link).unwrap();
    assert_eq!(server.models().len(), 1);
    assert_eq!(server.get(&path).body, bytes);
}
