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

/// A server on a GPU, which may be a software one.
fn on_gpu(gpu_memory: Option<u64>) -> Running {
    Running::start(|options| {
        options.open.device = rullama::DeviceChoice::Gpu;
        options.open.context = Some(256);
        options.open.gpu_memory = gpu_memory;
        options.parallel = 1;
    })
}

fn sum(server: &Running, model: &str) -> String {
    let request = json!({
        "model": model, "prompt": "What is 23 + 45?", "stream": false, "think": false, "options": { "temperature": 0 },
    });
    server.post("/api/generate", &request)["response"].as_str().unwrap().to_owned()
}

#[test]
fn models_make_room_within_the_gpu_memory() {
    let server = on_gpu(None);
    let answer = sum(&server, "demo");
    assert!(answer.contains("68"), "{answer}");
    let size = server.get("/api/ps")["models"][0]["size_vram"].as_u64().unwrap();
    assert!(size > 0);
    assert_eq!(sum(&server, "twin"), answer);
    assert_eq!(names(&server), ["demo", "twin"], "nothing limits it");
    drop(server);
    // Room for one and a half of them.
    let server = on_gpu(Some(size + size / 2));
    assert_eq!(sum(&server, "demo"), answer);
    assert_eq!(names(&server), ["demo"]);
    assert_eq!(sum(&server, "twin"), answer);
    assert_eq!(names(&server), ["twin"], "the first one has gone");
    // A model at work is waited for, and both requests are answered.
    let long = json!({ "model": "twin", "prompt": "Tell me a story.", "stream": false, "options": { "num_predict": 40 } });
    std::thread::scope(|scope| {
        let story = scope.spawn(|| server.post("/api/generate", &long));
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(sum(&server, "demo"), answer);
        assert_eq!(story.join().unwrap()["done"], true);
    });
    until("the other one has gone", || names(&server) == ["demo"]);
    drop(server);
    // A model that can never fit says so, and the server goes on.
    let server = on_gpu(Some(size / 100));
    let (status, text) = server.send("/api/generate", &json!({ "model": "demo", "prompt": "x" }));
    assert_eq!(status, 500, "{text}");
    assert!(text.contains("memory"), "{text}");
    assert!(names(&server).is_empty());
}

#[test]
fn adapters_by_request() {
    let adapter = crate::server::golden("gguf/micro-e2b-lora-F32.gguf");
    let server = Running::start(|options| {
        options.open.context = Some(128);
        options.open.adapters = vec![(adapter, 1.0)];
    });
    let plain = Running::start(|options| options.open.context = Some(128));
    let ask = |server: &Running, lora: Value| {
        let mut request = json!({ "model": "gemma4", "prompt": "one two", "raw": true, "temperature": 0, "max_tokens": 12 });
        if !lora.is_null() {
            request["lora"] = lora;
        }
        let reply = server.post("/v1/completions", &request);
        reply["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let base = ask(&plain, Value::Null);
    let with = ask(&server, Value::Null);
    assert_ne!(with, base, "the adapter changes the reply");
    let scale = |scale: f32| json!([{ "id": 0, "scale": scale }]);
    assert_eq!(ask(&server, scale(0.0)), base);
    assert_eq!(ask(&server, json!([])), base, "those that are not listed are off");
    assert_eq!(ask(&server, scale(1.0)), with);
    // With and without it at once: neither changes the other.
    std::thread::scope(|scope| {
        let (server, ask) = (&server, &ask);
        let asked: Vec<_> = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
            .map(|on| (on, scope.spawn(move || ask(server, scale(on)))))
            .into();
        for (on, reply) in asked {
            assert_eq!(
                reply.join().unwrap(),
                if on == 1.0 { with.as_str() } else { base.as_str() }
            );
        }
    });
    let listed = server.get("/lora-adapters?model=gemma4");
    assert_eq!((&listed[0]["id"], &listed[0]["scale"]), (&json!(0), &json!(1.0)), "{listed}");
    assert_eq!(server.send("/lora-adapters?model=gemma4", &scale(0.0)).0, 200);
    assert_eq!(ask(&server, Value::Null), base, "the default has changed");
    let wrong =
        json!({ "model": "gemma4", "prompt": "x", "raw": true, "lora": [{ "id": 7, "scale": 1 }] });
    let (status, text) = server.send("/v1/completions", &wrong);
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("there is no LoRA adapter 7"), "{text}");
}
