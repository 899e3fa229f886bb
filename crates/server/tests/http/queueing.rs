//! Many requests: the queue, clients that leave, the end of the server, limits and logs.

use std::{
    io::Read,
    sync::{Arc, Mutex, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use rullama_server::LogEntry;
use serde_json::{Value, json};

use crate::{client::begin, generation::with_engine, running::Running};

fn chat(text: &str, stream: bool) -> Vec<u8> {
    let messages = json!([{ "role": "user", "content": text }]);
    json!({ "model": "gemma4", "messages": messages, "stream": stream }).to_string().into_bytes()
}

/// Waits until something is so; it must not take longer than any machine needs.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn metric(server: &Running, name: &str) -> f64 {
    let text = server.get("/metrics").text();
    let line = text.lines().find(|line| line.starts_with(&format!("llamacpp:{name} ")));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_full_queue_refuses_and_empties() {
    let (server, engine) = with_engine(|options| options.api_limits.queue = 2);
    let waiting: Vec<_> = (0..2)
        .map(|_| begin(server.address, "POST", "/api/chat", &[], &chat("wait", false)))
        .collect();
    until("two wait", || metric(&server, "requests_deferred") == 2.0);
    for (path, kind) in [("/api/chat", ""), ("/v1/chat/completions", "api_error")] {
        let answer = server.send("POST", path, &[], &chat("hi", false));
        assert_eq!((answer.status, answer.header("retry-after")), (503, "1"));
        assert!(answer.text().contains("maximum pending requests exceeded"));
        assert!(answer.text().contains(kind));
    }
    engine.go.store(1, Ordering::SeqCst);
    for mut stream in waiting {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    }
    until("none waits", || metric(&server, "requests_deferred") == 0.0);
    assert_eq!(server.send("POST", "/api/chat", &[], &chat("hi", false)).status, 200);
    assert_eq!(metric(&server, "tokens_predicted_total"), 42.0);
}

#[test]
fn clients_that_leave_stop_the_engine() {
    let (server, engine) = with_engine(|_| {});
    let cancelled = |count| engine.cancelled.load(Ordering::SeqCst) == count;
    let mut running = begin(server.address, "POST", "/api/chat", &[], &chat("forever", true));
    running.read_exact(&mut [0; 400]).unwrap();
    assert_eq!(metric(&server, "requests_processing"), 1.0);
    drop(running);
    until("the stream stops", || cancelled(1));
    let whole = begin(server.address, "POST", "/v1/messages", &[], &{
        let mut request: Value = serde_json::from_slice(&chat("forever", false)).unwrap();
        request["max_tokens"] = 9.into();
        request.to_string().into_bytes()
    });
    until("it runs", || metric(&server, "requests_processing") == 1.0);
    drop(whole);
    until("a reply in one piece stops", || cancelled(2));
    let queued = begin(server.address, "POST", "/api/chat", &[], &chat("wait", true));
    until("it waits", || metric(&server, "requests_deferred") == 1.0);
    drop(queued);
    until("a queued one never starts", || cancelled(3));
    until("nothing is left", || {
        metric(&server, "requests_processing") + metric(&server, "requests_deferred") == 0.0
    });
}

#[test]
fn streams_in_flight_are_finished_at_the_end() {
    let (mut server, engine) =
        with_engine(|options| options.limits.drain = Duration::from_secs(30));
    let mut stream =
        begin(server.address, "POST", "/v1/chat/completions", &[], &chat("slow", true));
    let mut text = vec![0; 300];
    stream.read_exact(&mut text).unwrap();
    server.stop();
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("data: [DONE]"), "{text}");
    assert_eq!(text.matches("\"w \"").count(), 20);
    server.wait();
    assert_eq!(engine.cancelled.load(Ordering::SeqCst), 0);
}

#[test]
fn bodies_have_limits() {
    let (server, _) = with_engine(|options| {
        options.api_limits.body = 10_000;
        options.api_limits.prompt = 2_000;
        options.api_limits.silence = Duration::from_millis(200);
    });
    let long = "x".repeat(20_000);
    let answer = server.send("POST", "/v1/messages", &[], &chat(&long, false));
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["type"], "request_too_large");
    let answer = server.send("POST", "/api/chat", &[], &chat(&long[..5_000], false));
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("exceeds the context length"));
    // Half a body, then nothing.
    let headers = [("Content-Length", "500")];
    let mut stream = begin(server.address, "POST", "/api/chat", &headers, b"");
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 400") && text.contains("in time"), "{text}");
}

#[test]
fn compressed_bodies() {
    let (server, _) = with_engine(|options| options.api_limits.body = 10_000);
    let pack = |bytes: &[u8]| {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    };
    let request = json!({ "model": "gemma4", "input": "hello" }).to_string();
    let headers = [("Content-Encoding", "zstd")];
    let answer = server.send("POST", "/v1/responses", &headers, &pack(request.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let bomb = json!({ "model": "gemma4", "input": "x".repeat(1_000_000) }).to_string();
    let packed = pack(bomb.as_bytes());
    assert!(packed.len() < 10_000);
    assert_eq!(server.send("POST", "/v1/responses", &headers, &packed).status, 413);
    assert_eq!(server.send("POST", "/v1/responses", &headers, b"no zstd").status, 400);
}

#[test]
fn logs_tell_everything_but_what_was_said() {
    let lines: Arc<Mutex<Vec<LogEntry>>> = Arc::default();
    let written = Arc::clone(&lines);
    let (server, _) = with_engine(|options| {
        options.log = Some(Arc::new(move |entry| written.lock().unwrap().push(entry.clone())));
    });
    let answer = server.send("POST", "/api/chat", &[], &chat("my secret words", true));
    assert_eq!(answer.status, 200);
    server.send("POST", "/v1/models?key=secret", &[], b"");
    let mut left = begin(server.address, "POST", "/api/chat", &[], &chat("forever", true));
    left.read_exact(&mut [0; 400]).unwrap();
    drop(left);
    until("all three are logged", || lines.lock().unwrap().len() == 3);
    let lines = lines.lock().unwrap();
    assert_eq!(lines[0].id, answer.header("x-request-id"));
    assert_eq!((lines[0].method.as_str(), lines[0].path.as_str()), ("POST", "/api/chat"));
    assert_eq!((lines[0].status, lines[0].model.as_deref()), (200, Some("gemma4")));
    assert_eq!((lines[0].prompt_tokens, lines[0].cached_tokens), (Some(12), Some(8)));
    assert_eq!(lines[0].completion_tokens, Some(7));
    assert_eq!(lines[1].status, 405);
    assert_eq!(lines[2].status, 499, "the client left");
    for line in lines.iter() {
        let text = serde_json::to_string(line).unwrap();
        assert!(!text.contains("secret"), "{text}");
    }
}
