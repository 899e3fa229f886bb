//! What the demo model answers.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::OnceLock,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::server::{Running, request};

const SUM: &str = "What is 23 + 45?";

/// All tests of this file share a server, which runs their requests at once.
fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| Running::start(|_| {}))
}

fn content(reply: &Value) -> String {
    reply["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

#[test]
fn the_demo_model_adds_in_every_api() {
    let server = server();
    let chat = server.chat(SUM, json!({}));
    assert!(content(&chat).contains("68"), "{chat}");
    assert_eq!(chat["choices"][0]["finish_reason"], "stop");
    assert!(chat["usage"]["prompt_tokens"].as_u64().unwrap() > 5);
    let messages = json!([{ "role": "user", "content": SUM }]);
    let options = json!({ "temperature": 0 });
    let ollama =
        json!({ "model": "demo", "messages": messages, "options": options, "think": false });
    let (status, text) = server.send("/api/chat", &ollama);
    assert_eq!(status, 200);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: String =
        lines.iter().map(|line| line["message"]["content"].as_str().unwrap()).collect();
    assert_eq!(said, content(&chat), "a stream says the same");
    let last = lines.last().unwrap();
    assert!(
        last["prompt_eval_count"].as_u64().unwrap() > 5 && last["eval_duration"].as_u64() > Some(0)
    );
    let anthropic =
        json!({ "model": "demo", "messages": messages, "max_tokens": 60, "temperature": 0 });
    let message = server.post("/v1/messages", &anthropic);
    assert_eq!(message["content"][0]["text"], content(&chat));
    let responses = json!({ "model": "demo", "input": SUM, "temperature": 0, "reasoning": { "effort": "none" } });
    let response = server.post("/v1/responses", &responses);
    assert_eq!(response["output"][0]["content"][0]["text"], content(&chat));
    let generate = json!({ "model": "demo", "prompt": SUM, "options": options, "think": false, "stream": false });
    let generated = server.post("/api/generate", &generate);
    assert_eq!(generated["response"], content(&chat));
    assert!(generated["context"].as_array().unwrap().len() > 10);
    let count =
        server.post("/v1/messages/count_tokens", &json!({ "model": "demo", "messages": messages }));
    assert_eq!(count["input_tokens"], chat["usage"]["prompt_tokens"]);
}

#[test]
fn limits_stops_and_choices() {
    let server = server();
    let whole = content(&server.chat(SUM, json!({})));
    let short = server.chat(SUM, json!({ "max_tokens": 1 }));
    assert_eq!(short["choices"][0]["finish_reason"], "length");
    assert_eq!(short["usage"]["completion_tokens"], 1);
    let cut = server.chat(SUM, json!({ "stop": ["68"] }));
    assert_eq!(content(&cut), whole.split("68").next().unwrap());
    let messages = json!([{ "role": "user", "content": SUM }]);
    let stopped = json!({
        "model": "demo", "messages": messages, "max_tokens": 60, "temperature": 0, "stop_sequences": ["68"],
    });
    let stopped = server.post("/v1/messages", &stopped);
    assert_eq!(
        (&stopped["stop_reason"], &stopped["stop_sequence"]),
        (&json!("stop_sequence"), &json!("68"))
    );
    let several = server.chat(SUM, json!({ "n": 3 }));
    let choices = several["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 3);
    assert!(choices.iter().all(|choice| choice["message"]["content"] == whole.as_str()));
    let likely = server.chat(SUM, json!({ "logprobs": true, "top_logprobs": 2 }));
    let tokens = likely["choices"][0]["logprobs"]["content"].as_array().unwrap();
    let joined: String = tokens.iter().map(|token| token["token"].as_str().unwrap()).collect();
    assert!(joined.starts_with(&whole), "{joined:?} {whole:?}");
    assert_eq!(tokens[0]["top_logprobs"].as_array().unwrap().len(), 2);
    assert_eq!(tokens[0]["top_logprobs"][0]["token"], tokens[0]["token"], "the best one is taken");
    // The first token of the reply is forbidden, so that another one comes.
    let first =
        server.post("/tokenize", &json!({ "model": "demo", "content": tokens[0]["token"] }));
    let id = first["tokens"][0].to_string();
    let biased = server.chat(SUM, json!({ "logit_bias": { id: -100 } }));
    assert_ne!(content(&biased), whole);
}

#[test]
fn seeds_repeat_and_prompts_are_cached() {
    let server = server();
    let hot = |seed: u32| {
        content(&server.chat(
            "Tell me a story.",
            json!({ "temperature": 1.5, "seed": seed, "max_tokens": 20 }),
        ))
    };
    assert_eq!(hot(7), hot(7));
    // Beginnings of whole chunks are kept: this prompt has several.
    let long = format!("{} {SUM}", "Some words that do not matter at all. ".repeat(60));
    let cached =
        |reply: &Value| reply["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    let first = server.chat(&long, json!({ "max_tokens": 2 }));
    let second = server.chat(&long, json!({ "max_tokens": 2 }));
    assert_eq!(cached(&first), 0);
    assert!(cached(&second) >= 256, "{}", second["usage"]);
    assert_eq!(content(&first), content(&second));
}

#[test]
fn json_schemas_hold() {
    let schema = json!({
        "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"],
        "additionalProperties": false,
    });
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "sum", "schema": schema } });
    let reply = server().chat(SUM, json!({ "response_format": format, "max_tokens": 300 }));
    let value: Value = serde_json::from_str(&content(&reply)).unwrap();
    assert!(value["sum"].is_i64(), "{value}");
    let bad = json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "x", "schema": { "type": "nonsense" } } } });
    let (status, text) = server().send("/v1/chat/completions", &request(SUM, bad));
    assert_eq!(status, 400, "{text}");
}

#[test]
fn calls_that_are_demanded_are_made() {
    let tool = |name: &str| {
        let parameters =
            json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        json!({ "type": "function", "function": { "name": name, "parameters": parameters } })
    };
    let tools = json!([tool("get_weather"), tool("get_time")]);
    let ask = |choice: Value| {
        let more = json!({ "tools": tools, "tool_choice": choice, "max_tokens": 80 });
        server().post("/v1/chat/completions", &request("What is the weather in Oslo?", more))
    };
    let text = ask(json!("none"));
    assert_eq!(text["choices"][0]["message"].get("tool_calls"), None, "{text}");
    for (choice, names) in [
        (json!({ "type": "function", "function": { "name": "get_time" } }), &["get_time"][..]),
        (json!("required"), &["get_weather", "get_time"]),
    ] {
        let reply = ask(choice);
        let choice = &reply["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{reply}");
        let call = &choice["message"]["tool_calls"][0]["function"];
        assert!(names.contains(&call["name"].as_str().unwrap()), "{reply}");
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments.is_object());
    }
    let auto = ask(json!("auto"));
    let call = &auto["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "get_weather", "{auto}");
    assert_eq!(call["arguments"], r#"{"city":"Oslo"}"#);
}

#[test]
fn prompts_that_do_not_fit() {
    let long = "word ".repeat(6000);
    let (status, text) = server().send("/v1/chat/completions", &request(&long, json!({})));
    assert_eq!(status, 400);
    assert!(text.contains("context_length_exceeded"), "{text}");
    // Ollama drops old messages instead.
    let messages = json!([
        { "role": "user", "content": long }, { "role": "assistant", "content": "Yes." }, { "role": "user", "content": SUM },
    ]);
    let request = json!({
        "model": "demo", "messages": messages, "stream": false, "think": false, "options": { "temperature": 0 },
    });
    let reply = server().post("/api/chat", &request);
    assert!(reply["message"]["content"].as_str().unwrap().contains("68"), "{reply}");
    assert!(reply["prompt_eval_count"].as_u64().unwrap() < 4096);
}

#[test]
fn end_tokens_can_be_ignored() {
    let server = server();
    let usual = server.chat(SUM, json!({}));
    let longer = server.chat(SUM, json!({ "ignore_eos": true, "max_tokens": 40 }));
    assert_eq!(longer["choices"][0]["finish_reason"], "length");
    assert_eq!(longer["usage"]["completion_tokens"], 40);
    assert!(content(&longer).starts_with(content(&usual).trim_end()), "{longer}");
}

#[test]
fn clients_that_leave_free_the_engine() {
    // A server of its own: nothing else keeps it busy.
    let server = Running::start(|_| {});
    let request = request(
        "Tell me a long story.",
        json!({ "stream": true, "max_tokens": 3000, "ignore_eos": true }),
    );
    let body = request.to_string();
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream.read_exact(&mut [0; 800]).unwrap();
    drop(stream);
    // A request that went on would take minutes.
    let start = Instant::now();
    loop {
        let mut metrics = ureq::get(format!("http://{}/metrics", server.address)).call().unwrap();
        let text = metrics.body_mut().read_to_string().unwrap();
        if text.contains("llamacpp:requests_processing 0\n") {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn embeddings_and_diffusion() {
    let server = server();
    let one =
        server.post("/api/embed", &json!({ "model": "embedder", "input": ["a cat", "a dog"] }));
    let vectors = one["embeddings"].as_array().unwrap();
    assert_eq!(vectors.len(), 2);
    let length: f64 =
        vectors[0].as_array().unwrap().iter().map(|x| x.as_f64().unwrap().powi(2)).sum();
    assert!((length - 1.0).abs() < 1e-3, "{length}");
    assert!(one["prompt_eval_count"].as_u64().unwrap() >= 4);
    let short = server
        .post("/v1/embeddings", &json!({ "model": "embedder", "input": "a cat", "dimensions": 8 }));
    assert_eq!(short["data"][0]["embedding"].as_array().unwrap().len(), 8);
    let (status, _) = server.send(
        "/v1/embeddings",
        &json!({ "model": "embedder", "input": "x", "dimensions": 9999999 }),
    );
    assert_eq!(status, 400);
    let diffusion =
        json!({ "model": "diffusion", "prompt": "Hello", "raw": true, "max_tokens": 8, "seed": 1 });
    let reply = server.post("/v1/completions", &diffusion);
    assert!(reply["choices"][0]["text"].is_string(), "{reply}");
    assert!(reply["usage"]["completion_tokens"].as_u64().unwrap() <= 8);
    let adapted = json!({ "model": "diffusion", "prompt": "x", "raw": true, "lora": [{ "id": 0, "scale": 1 }] });
    let (status, text) = server.send("/v1/completions", &adapted);
    assert_eq!(status, 400, "what cannot be done is refused: {text}");
}
