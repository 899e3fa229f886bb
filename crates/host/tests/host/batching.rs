//! Requests with images and audio, which share passes with others.

use std::{fmt::Write as _, sync::OnceLock, thread};

use serde_json::{Value, json};

use crate::server::{Running, golden};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| Running::start(|_| {}))
}

/// A golden file in base64.
fn encoded(name: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in std::fs::read(golden(name)).unwrap().chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            let _ = write!(text, "{}", char::from(letter));
        }
    }
    text
}

fn ask(text: &str, file: Option<&str>) -> String {
    let mut message = json!({ "role": "user", "content": text });
    if let Some(file) = file {
        message["images"] = json!([encoded(file)]);
    }
    let request = json!({
        "model": "demo", "messages": [message], "stream": false, "think": false, "options": { "temperature": 0 },
    });
    server().post("/api/chat", &request)["message"]["content"].as_str().unwrap().to_owned()
}

/// How many requests a decode pass had on average.
fn busy() -> f64 {
    let mut metrics = ureq::get(format!("http://{}/metrics", server().address)).call().unwrap();
    let text = metrics.body_mut().read_to_string().unwrap();
    let line = text.lines().find(|line| line.starts_with("llamacpp:n_busy_slots_per_decode "));
    line.unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn images_audio_and_text_run_in_one_batch() {
    const SEEN: &str = "What is in the picture?";
    let questions: [(&str, Option<&str>); 3] = [
        (SEEN, Some("demo/picture-1.png")),
        ("Which digit do you hear?", Some("demo/digit-6-Michael.wav")),
        ("What is 23 + 45?", None),
    ];
    let alone: Vec<String> = questions.iter().map(|(text, file)| ask(text, *file)).collect();
    assert!(alone[0].contains("green triangles"), "{alone:?}");
    assert_eq!(alone[1], "6");
    assert!(alone[2].contains("68"), "{alone:?}");
    assert!(busy() < 1.01, "one after the other: {}", busy());
    let together: Vec<String> = thread::scope(|scope| {
        let all: Vec<_> = (0..9)
            .map(|number| questions[number % 3])
            .map(|(text, file)| scope.spawn(move || ask(text, file)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (number, reply) in together.iter().enumerate() {
        assert_eq!(reply, &alone[number % 3], "as alone");
    }
    // Nine requests that are given to the engine at once; one at a time, this would be 1.
    assert!(busy() > 1.3, "{}", busy());
}

#[test]
fn what_cannot_be_read_is_refused() {
    let broken = json!({ "role": "user", "content": "?", "images": ["iVBORw0KGgo="] });
    // Not streamed: a stream that waits for long begins with status 200.
    let request = json!({ "model": "demo", "messages": [broken], "stream": false });
    let (status, text) = server().send("/api/chat", &request);
    assert_eq!(status, 400, "an image that is broken: {text}");
    let raw = json!({
        "model": "demo", "prompt": "x", "raw": true, "images": [encoded("demo/picture-1.png")],
        "stream": false,
    });
    let (status, text) = server().send("/api/generate", &raw);
    assert_eq!(status, 400, "an image without a place in the prompt: {text}");
    let error: Value = serde_json::from_str(&text).unwrap();
    assert!(error["error"].as_str().unwrap().contains("raw"), "{text}");
}
