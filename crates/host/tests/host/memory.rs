//! Which models are in memory.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::Running;

fn names(server: &Running) -> Vec<String> {
    let models = server.get("/api/ps")["models"].as_array().unwrap().clone();
    let mut names: Vec<String> =
        models.iter().map(|model| model["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn load(server: &Running, model: &str, more: Value) -> Value {
    let mut request = json!({ "model": model, "prompt": "" });
    let Value::Object(more) = more else { panic!("{more} is no object") };
    for (name, value) in more {
        request[name] = value;
    }
    server.post("/api/generate", &request)
}

#[test]
fn models_come_and_go() {
    let server = Running::start(|options| options.models = 2);
    assert!(names(&server).is_empty());
    assert_eq!(load(&server, "demo", json!({ "keep_alive": "1h" }))["done_reason"], "load");
    assert_eq!(names(&server), ["demo"]);
    let running = server.get("/api/ps")["models"][0].clone();
    assert_eq!(running["context_length"], 4096);
    load(&server, "twin", json!({ "keep_alive": "2h" }));
    assert_eq!(names(&server), ["demo", "twin"]);
    // A third one takes the place of the one with the shortest keep-alive.
    load(&server, "embedder", json!({}));
    assert_eq!(names(&server), ["embedder", "twin"]);
    assert_eq!(load(&server, "twin", json!({ "keep_alive": 0 }))["done_reason"], "unload");
    assert_eq!(names(&server), ["embedder"]);
}

#[test]
fn idle_models_are_unloaded_and_other_contexts_loaded_again() {
    let server = Running::start(|_| {});
    let context = |server: &Running| server.get("/api/ps")["models"][0]["context_length"].clone();
    load(&server, "demo", json!({ "options": { "num_ctx": 512 } }));
    assert_eq!(context(&server), 512);
    load(&server, "demo", json!({}));
    assert_eq!(context(&server), 512, "a request that wants nothing changes nothing");
    load(&server, "demo", json!({ "options": { "num_ctx": 1024 } }));
    assert_eq!(context(&server), 1024);
    let request = json!({
        "model": "demo", "prompt": "What is 23 + 45?", "stream": false, "keep_alive": 0, "think": false,
    });
    let reply = server.post("/api/generate", &request);
    assert!(reply["response"].as_str().unwrap().contains("68"), "{reply}");
    until("unloaded when idle", || names(&server).is_empty());
    // And loaded again by the next request.
    assert_eq!(server.send("/api/generate", &request).0, 200);
}
