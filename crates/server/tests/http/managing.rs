//! Routes that change the store.

use rullama_pull::PullOptions;
use rullama_store::Digest;
use serde_json::{Value, json};

use crate::{
    client::begin,
    generation::with_engine,
    running::{Running, weights},
};

fn names(server: &Running) -> Vec<String> {
    let tags = server.get("/api/tags").json();
    let mut names: Vec<String> = tags["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn copies_and_deletes() {
    let (server, engine) = with_engine(|_| {});
    let copy = json!({ "source": "gemma4", "destination": "mine:1" });
    assert_eq!(server.post("/api/copy", &copy).status, 200);
    assert_eq!(names(&server), ["embedder:latest", "gemma4:latest", "mine:1"]);
    let copy = json!({ "source": "nobody", "destination": "mine:2" });
    let answer = server.post("/api/copy", &copy);
    assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("model 'nobody' not found")));
    server.post("/api/generate", &json!({ "model": "gemma4" }));
    let delete =
        |body: Value| server.send("DELETE", "/api/delete", &[], body.to_string().as_bytes());
    assert_eq!(delete(json!({ "model": "gemma4" })).status, 200);
    assert!(engine.loaded.lock().unwrap().is_empty(), "a deleted model does not stay in memory");
    assert_eq!(delete(json!({ "name": "mine:1" })).status, 200, "the old name of the field");
    assert_eq!(names(&server), ["embedder:latest"]);
    assert_eq!(delete(json!({ "model": "gemma4" })).status, 404);
    assert_eq!(delete(json!({ "model": "../x" })).status, 400);
}

#[test]
fn models_from_uploads() {
    let (server, _) = with_engine(|_| {});
    let bytes = weights("gemma4", "uploaded");
    let digest = Digest::of(&bytes).to_string();
    let path = format!("/api/blobs/{digest}");
    assert_eq!(server.ask("HEAD", &path, &[]).status, 404);
    let answer = server.send("POST", &path, &[], b"other bytes");
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"].as_str().unwrap().starts_with("digest mismatch, expected"));
    // A client that leaves in the middle leaves nothing.
    let headers = [("Content-Length", "100000")];
    drop(begin(server.address, "POST", &path, &headers, b""));
    assert_eq!(server.send("POST", &path, &[], &bytes).status, 201);
    assert_eq!(server.ask("HEAD", &path, &[]).status, 200);
    assert_eq!(server.send("POST", &path, &[], &bytes).status, 200);
    assert_eq!(server.ask("HEAD", "/api/blobs/sha256:..", &[]).status, 400);

    let create = json!({
        "model": "new", "files": { "a.gguf": digest }, "system": "Be brief.",
        "parameters": { "temperature": 0.5 },
    });
    let lines = server.post("/api/create", &create).frames();
    assert_eq!(lines.last().unwrap(), &json!({ "status": "success" }));
    let shown = server.post("/api/show", &json!({ "model": "new" })).json();
    assert_eq!(shown["system"], "Be brief.");
    assert!(shown["parameters"].as_str().unwrap().contains("temperature"));
    let create = json!({ "model": "newer", "from": "new", "system": "Be brave.", "stream": false });
    assert_eq!(server.post("/api/create", &create).json(), json!({ "status": "success" }));
    let shown = server.post("/api/show", &json!({ "model": "newer" })).json();
    assert_eq!(
        (&shown["system"], &shown["details"]["family"]),
        (&json!("Be brave."), &json!("gemma4"))
    );
    let create = json!({ "model": "newest", "from": "nobody" });
    assert_eq!(server.post("/api/create", &create).status, 404);
}

#[test]
fn what_a_model_is() {
    let (server, _) = with_engine(|_| {});
    let shown = server.post("/api/show", &json!({ "model": "gemma4" })).json();
    assert_eq!(shown["model_info"]["general.architecture"], "gemma4");
    assert_eq!(shown["model_info"]["gemma4.context_length"], 4096);
    assert_eq!(shown["model_info"].get("general.name"), None);
    assert_eq!(shown["capabilities"], json!(["completion", "tools", "thinking"]));
    assert!(shown["template"].as_str().unwrap().contains("tools"));
    assert!(shown["modified_at"].as_str().unwrap().ends_with('Z'));
    let body = json!({ "name": "gemma4" }).to_string();
    let copilot = [("User-Agent", "GitHubCopilotChat/1.0")];
    let shown = server.send("POST", "/api/show", &copilot, body.as_bytes()).json();
    assert_eq!(shown["model_info"]["general.basename"], "gemma4");
    assert_eq!(server.post("/api/show", &json!({ "model": "nobody" })).status, 404);
    let listed = server.get("/v1/models").json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    let one = server.get("/v1/models/gemma4:latest").json();
    assert_eq!((&one["id"], &one["owned_by"]), (&json!("gemma4:latest"), &json!("library")));
    assert_eq!(server.get("/v1/models/a/b/c").status, 404);
}

/// Nothing listens there; how pulling works is tested where it is implemented.
#[test]
fn pulls_report_their_failure_in_the_stream() {
    let (server, _) = with_engine(|options| {
        options.pull = Some(PullOptions { attempts: 1, ..PullOptions::default() });
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut request =
        json!({ "model": format!("127.0.0.1:{port}/library/tiny"), "insecure": true });
    let lines = server.post("/api/pull", &request).frames();
    assert_eq!(lines[0], json!({ "status": "pulling manifest" }));
    assert!(lines.last().unwrap()["error"].as_str().unwrap().contains("127.0.0.1"), "{lines:?}");
    request["stream"] = false.into();
    assert_eq!(server.post("/api/pull", &request).status, 500);
    let (server, _) = with_engine(|_| {});
    assert_eq!(server.post("/api/pull", &request).status, 501);
}
