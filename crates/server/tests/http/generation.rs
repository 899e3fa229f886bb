//! The routes that generate, in each API.

use std::sync::{Arc, atomic::Ordering};

use rullama_api::{Input, MediaKind};
use rullama_server::Options;
use serde_json::{Value, json};

use crate::{
    client::Answer,
    fake::Fake,
    running::{Running, weights},
};

/// A server whose store has a model `gemma4` and an embedding model `embedder`.
pub(crate) fn with_engine(change: impl FnOnce(&mut Options)) -> (Running, Arc<Fake>) {
    let engine = Arc::new(Fake::default());
    let given = Arc::clone(&engine);
    let server = Running::with(|options| {
        options.engine = Some(given);
        change(options);
    });
    server.add("gemma4", &weights("gemma4", "a"));
    server.add("embedder", &weights("gemma-embedding", "b"));
    (server, engine)
}

fn user(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

/// All text of a reply, whichever API and whether it was streamed.
fn text_of(path: &str, answer: &Answer, is_streamed: bool) -> String {
    let frames = if is_streamed { answer.frames() } else { vec![answer.json()] };
    let piece = |frame: &Value| -> String {
        let found = match path {
            "/api/chat" => frame["message"]["content"].clone(),
            "/api/generate" => frame["response"].clone(),
            "/v1/chat/completions" => {
                let place = if is_streamed { "delta" } else { "message" };
                frame["choices"][0][place]["content"].clone()
            }
            "/v1/completions" => frame["choices"][0]["text"].clone(),
            "/v1/responses" if is_streamed => match frame["type"].as_str() {
                Some("response.output_text.delta") => frame["delta"].clone(),
                _ => Value::Null,
            },
            "/v1/responses" => {
                let output = frame["output"].as_array().unwrap();
                output.iter().find(|item| item["type"] == "message").unwrap()["content"][0]["text"]
                    .clone()
            }
            "/v1/messages" if is_streamed => frame["delta"]["text"].clone(),
            "/v1/messages" => frame["content"].as_array().unwrap().last().unwrap()["text"].clone(),
            other => panic!("{other}"),
        };
        found.as_str().unwrap_or_default().to_owned()
    };
    frames.iter().map(piece).collect()
}

const PATHS: [&str; 6] = [
    "/api/chat",
    "/api/generate",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
];

fn body(path: &str, text: &str, stream: bool) -> Value {
    let mut body = json!({ "model": "gemma4", "stream": stream, "max_tokens": 99 });
    match path {
        "/api/generate" | "/v1/completions" => body["prompt"] = text.into(),
        "/v1/responses" => body["input"] = text.into(),
        _ => body["messages"] = user(text),
    }
    body
}

#[test]
fn streams_and_bodies_say_the_same_in_every_api() {
    let (server, _) = with_engine(|_| {});
    for path in PATHS {
        for stream in [false, true] {
            let answer = server.post(path, &body(path, "Hello there, world", stream));
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            assert_eq!(text_of(path, &answer, stream), "Hello there, world", "{path} {stream}");
            assert!(answer.header("x-request-id").starts_with("req_"));
            assert_eq!(answer.header("x-request-id"), answer.header("request-id"));
            assert!(!answer.text().contains("\n\n\n"));
        }
    }
}

#[test]
fn usage_and_ends() {
    let (server, _) = with_engine(|_| {});
    let chat =
        server.post("/v1/chat/completions", &body("/v1/chat/completions", "hi", false)).json();
    assert_eq!(chat["usage"]["prompt_tokens_details"]["cached_tokens"], 8);
    assert_eq!(chat["usage"]["total_tokens"], 19);
    assert_eq!(chat["choices"][0]["finish_reason"], "stop");
    assert_eq!(chat["choices"][0]["message"]["reasoning_content"], "Hm.");
    let last = server.post("/api/chat", &body("/api/chat", "long", true)).frames().pop().unwrap();
    assert_eq!((&last["done"], &last["done_reason"]), (&json!(true), &json!("length")));
    assert_eq!((&last["prompt_eval_count"], &last["eval_count"]), (&json!(12), &json!(7)));
    let message = server.post("/v1/messages", &body("/v1/messages", "call", false)).json();
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(message["content"][0]["input"], json!({ "city": "Oslo" }));
    assert_eq!(message["usage"]["cache_read_input_tokens"], 8);
}

#[test]
fn several_choices_and_log_probabilities() {
    let (server, engine) = with_engine(|_| {});
    let mut request = body("/v1/chat/completions", "a b", false);
    request["n"] = 3.into();
    request["logprobs"] = true.into();
    request["top_logprobs"] = 2.into();
    request["logit_bias"] = json!({ "7": -100 });
    let chat = server.post("/v1/chat/completions", &request).json();
    let choices = chat["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 3);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], index);
        assert_eq!(choice["logprobs"]["content"].as_array().unwrap().len(), 2);
    }
    let seen = engine.last();
    assert_eq!((seen.n, seen.logprobs), (3, Some(2)));
    assert_eq!(seen.options.logit_bias.unwrap()[&7], -100.0);
    request["n"] = 1000.into();
    assert_eq!(server.post("/v1/chat/completions", &request).status, 400);
}

#[test]
fn the_models_defaults_are_under_the_request() {
    let (server, engine) = with_engine(|_| {});
    let layers = [
        server.store.blob("model", weights("gemma4", "mine")),
        server.store.blob("system", "Be brief."),
        server.store.blob("params", r#"{"temperature":0.25,"stop":["END"],"num_ctx":512}"#),
        server.store.blob(
            "messages",
            r#"[{"role":"user","content":"ping"},{"role":"assistant","content":"pong"}]"#,
        ),
    ];
    server.add_layers("mine", &layers);
    let mut request = body("/api/chat", "hi", false);
    request["model"] = "Mine".into();
    request["options"] = json!({ "temperature": 0.5 });
    assert_eq!(server.post("/api/chat", &request).status, 200);
    let seen = engine.last();
    assert_eq!(seen.options.temperature, Some(0.5));
    assert_eq!(seen.options.num_ctx, Some(512));
    assert_eq!(seen.options.stop, Some(vec!["END".to_owned()]));
    let Input::Chat(chat) = seen.input else { panic!("a chat") };
    let roles = |messages: &[rullama_chat::Message]| {
        messages.iter().map(|message| message.role.clone()).collect::<Vec<_>>()
    };
    assert_eq!(roles(&chat.conversation.messages), ["system", "user", "assistant", "user"]);
    assert!(chat.conversation.thinking, "on unless the request says otherwise");

    request["messages"] =
        json!([{ "role": "system", "content": "Mine." }, { "role": "user", "content": "hi" }]);
    request["think"] = false.into();
    assert_eq!(server.post("/api/chat", &request).status, 200);
    let Input::Chat(chat) = engine.last().input else { panic!("a chat") };
    assert_eq!(roles(&chat.conversation.messages), ["system", "user", "assistant", "user"]);
    assert!(!chat.conversation.thinking);
    let first = serde_json::to_value(&chat.conversation.messages[0]).unwrap();
    assert_eq!(first["content"], "Mine.");

    // As Ollama's templates do it: an empty text is no system message.
    request["messages"][0]["content"] = "".into();
    assert_eq!(server.post("/api/chat", &request).status, 200);
    let Input::Chat(chat) = engine.last().input else { panic!("a chat") };
    assert_eq!(roles(&chat.conversation.messages), ["user", "assistant", "user"]);
    assert_eq!(server.post("/v1/chat/completions", &request).status, 200);
    let Input::Chat(chat) = engine.last().input else { panic!("a chat") };
    assert_eq!(roles(&chat.conversation.messages), ["system", "user", "assistant", "user"]);
}

/// MedGemma is a Gemma 3 of another name that thinks.
#[test]
fn med_gemma_thinks() {
    let (server, engine) = with_engine(|_| {});
    let tokens: rullama_gguf::StringArray = ["<start_of_turn>"].iter().collect();
    let file = |name: &str| {
        let file = rullama_gguf::Writer::new().kv("general.architecture", "gemma3");
        let file = file.kv("general.name", name).kv("tokenizer.ggml.tokens", tokens.clone());
        file.finish().unwrap()
    };
    server.add("medical", &file("MedGemma 1.5 4B It"));
    server.add("plain", &file("Gemma 3 4B It"));
    let show = |name: &str| server.post("/api/show", &json!({ "model": name })).json();
    assert_eq!(show("medical")["capabilities"], json!(["completion", "thinking"]));
    assert_eq!(show("plain")["capabilities"], json!(["completion"]));
    // It thinks unless the request says otherwise; of a model that does not think, no thought can be asked.
    let ask = |name: &str, think: Option<bool>| {
        let mut request = body("/api/chat", "hi", false);
        request["model"] = name.into();
        if let Some(think) = think {
            request["think"] = think.into();
        }
        server.post("/api/chat", &request)
    };
    let thinks = || {
        let Input::Chat(chat) = engine.last().input else { panic!("a chat") };
        chat.conversation.thinking
    };
    for (think, wanted) in [(None, true), (Some(true), true), (Some(false), false)] {
        let reply = ask("medical", think).json();
        assert_eq!(thinks(), wanted, "{think:?}");
        assert_eq!(reply["message"]["thinking"].is_string(), wanted, "{reply}");
    }
    assert_eq!(ask("plain", None).status, 200);
    assert!(!thinks());
    assert_eq!(ask("plain", Some(true)).status, 400);
}

#[test]
fn what_a_model_cannot_do_is_refused() {
    let (server, _) = with_engine(|_| {});
    let png = "iVBORw0KGgo=";
    let mut image = body("/api/chat", "what is this", false);
    image["messages"][0]["images"] = json!([png]);
    let answer = server.post("/api/chat", &image);
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"].as_str().unwrap().contains("does not support vision"));

    let mut embedder = body("/api/chat", "hi", false);
    embedder["model"] = "embedder".into();
    let answer = server.post("/api/chat", &embedder);
    assert_eq!(answer.json()["error"], "\"embedder:latest\" does not support chat");
    let answer = server.post("/v1/embeddings", &json!({ "model": "gemma4", "input": "x" }));
    assert_eq!(
        (answer.status, &answer.json()["error"]["type"]),
        (400, &json!("invalid_request_error"))
    );

    let layers = [
        server.store.blob("model", weights("gemma4", "eyes")),
        server.store.blob("projector", projector()),
    ];
    server.add_layers("eyes", &layers);
    image["model"] = "eyes".into();
    assert_eq!(server.post("/api/chat", &image).status, 200);
}

fn projector() -> Vec<u8> {
    let file = rullama_gguf::Writer::new().kv("general.architecture", "clip");
    file.kv("clip.vision.block_count", 2u32).kv("clip.audio.block_count", 2u32).finish().unwrap()
}

#[test]
fn speech_is_written_down() {
    let (server, engine) = with_engine(|_| {});
    let layers = [
        server.store.blob("model", weights("gemma4", "ears")),
        server.store.blob("projector", projector()),
    ];
    server.add_layers("ears", &layers);
    let form = |format: &str, wav: &str| {
        let field = |name: &str, value: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let mut form = field("model", "ears") + &field("response_format", format);
        form.push_str(
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n",
        );
        form.push_str(&format!("{wav}\r\n--x--\r\n"));
        let headers = [("Content-Type", "multipart/form-data; boundary=x")];
        server.send("POST", "/v1/audio/transcriptions", &headers, form.as_bytes())
    };
    let wav = "RIFF\x24\0\0\0WAVEfmt ";
    let answer = form("json", wav);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.json()["text"].as_str().unwrap().is_empty());
    let Input::Chat(chat) = engine.last().input else { panic!("a chat") };
    assert_eq!(chat.media[0].kind, MediaKind::Audio);
    assert_eq!(engine.last().think, Some(false));
    let answer = form("text", wav);
    assert!(answer.header("content-type").starts_with("text/plain"));
    assert_eq!(form("json", "no sound").status, 400);
    assert_eq!(server.post("/v1/audio/transcriptions", &json!({})).status, 400);
}

#[test]
fn models_are_loaded_and_unloaded() {
    let (server, _) = with_engine(|_| {});
    assert_eq!(server.get("/api/ps").json(), json!({ "models": [] }));
    let answer = server.post("/api/generate", &json!({ "model": "gemma4" })).json();
    assert_eq!((&answer["done_reason"], &answer["done"]), (&json!("load"), &json!(true)));
    let running = server.get("/api/ps").json()["models"][0].clone();
    assert_eq!(running["name"], "gemma4:latest");
    assert_eq!(running["size_vram"], 5);
    assert!(running["expires_at"].as_str().unwrap().starts_with("9999-12-31"));
    let unload = json!({ "model": "gemma4", "messages": [], "keep_alive": 0 });
    assert_eq!(server.post("/api/chat", &unload).json()["done_reason"], "unload");
    assert_eq!(server.get("/api/ps").json(), json!({ "models": [] }));
}

#[test]
fn errors_in_the_shape_of_each_api() {
    let (server, _) = with_engine(|_| {});
    for path in PATHS {
        for stream in [false, true] {
            let mut unknown = body(path, "hi", stream);
            unknown["model"] = "nobody".into();
            let answer = server.post(path, &unknown);
            let error = answer.json();
            assert_eq!(answer.status, 404, "{path}");
            let message = match path {
                "/v1/messages" => {
                    assert_eq!(error["type"], "error");
                    assert_eq!(error["request_id"], answer.header("request-id"));
                    &error["error"]["message"]
                }
                _ if path.starts_with("/v1") => {
                    assert_eq!(error["error"]["code"], "model_not_found");
                    &error["error"]["message"]
                }
                _ => &error["error"],
            };
            assert_eq!(message, "model 'nobody' not found");
            // Known before the first frame: a status of its own, and no reason to try again.
            let answer = server.post(path, &body(path, "fail", stream));
            assert_eq!((answer.status, answer.header("x-should-retry")), (500, "false"), "{path}");
            assert_eq!(answer.header("content-type"), "application/json");
            assert_eq!(server.post(path, &body(path, "refuse", stream)).status, 400);
            assert_eq!(server.post(path, &body(path, "vanish", stream)).status, 500);
        }
        let frames = server.post(path, &body(path, "break", true)).frames();
        let last = frames.last().unwrap();
        match path {
            "/v1/messages" => assert_eq!(last["error"]["message"], "boom"),
            "/v1/responses" => assert_eq!(last["response"]["error"]["message"], "boom"),
            _ if path.starts_with("/v1") => assert_eq!(last["error"]["message"], "boom"),
            _ => assert_eq!(last["error"], "boom"),
        }
        for (bad, text) in
            [("", "missing request body"), ("{", "invalid JSON"), ("[1]", "JSON object")]
        {
            let answer =
                server.send("POST", path, &[("Content-Type", "text/plain")], bad.as_bytes());
            assert_eq!(answer.status, 400);
            assert!(answer.text().contains(text), "{path}: {}", answer.text());
        }
    }
    server.ask("GET", "/v1/nothing", &[]).json()["error"]["type"].as_str().unwrap();
    assert_eq!(server.ask("GET", "/v1/chat/completions", &[]).status, 405);
    assert_eq!(server.post("/v1/rerank", &json!({})).status, 501);
    assert_eq!(server.post("/api/push", &json!({ "model": "x" })).status, 501);
}

/// Clients of llama.cpp's own routes learn which route to use.
#[test]
fn routes_of_llama_cpp_that_are_missing_name_the_ones_to_use() {
    let (server, _) = with_engine(|_| {});
    for (path, part) in [
        ("/completion", "/v1/completions"),
        ("/completions", "/v1/completions"),
        ("/chat/completions", "/v1/chat/completions"),
        ("/embedding", "/v1/embeddings"),
        ("/embeddings", "/v1/embeddings"),
        ("/rerank", "not support"),
        ("/reranking", "not support"),
        ("/infill", "not support"),
    ] {
        let answer = server.post(path, &json!({ "prompt": "hello" }));
        assert_eq!(answer.status, 501, "{path}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(part), "{path}: {message}");
    }
    let answer = server.get("/slots");
    assert_eq!(answer.status, 501);
    assert!(answer.text().contains("/metrics"), "{}", answer.text());
}

#[test]
fn embeddings() {
    let (server, _) = with_engine(|_| {});
    let answer = server.post("/api/embed", &json!({ "model": "embedder", "input": ["a", "bcd"] }));
    assert_eq!(answer.json()["embeddings"], json!([[1.0, 0.5], [3.0, 0.5]]));
    assert_eq!(answer.json()["prompt_eval_count"], 2);
    let answer = server.post("/api/embeddings", &json!({ "model": "embedder", "prompt": "ab" }));
    assert_eq!(answer.json(), json!({ "embedding": [2.0, 0.5] }));
    let request = json!({ "model": "embedder", "input": "a", "encoding_format": "base64" });
    let answer = server.post("/v1/embeddings", &request).json();
    assert_eq!(answer["data"][0]["embedding"], "AACAPwAAAD8=");
    assert_eq!(answer["usage"]["total_tokens"], 1);
}

#[test]
fn prompts_are_rendered_counted_and_cut_into_tokens() {
    let (server, engine) = with_engine(|_| {});
    let mut request = body("/v1/messages", "hello", false);
    request.as_object_mut().unwrap().remove("max_tokens");
    let answer = server.post("/v1/messages/count_tokens", &request);
    assert_eq!(answer.json(), json!({ "input_tokens": 19 }));
    let mut request = body("/api/chat", "hello", true);
    request["_debug_render_only"] = true.into();
    let answer = server.post("/api/chat", &request).json();
    assert_eq!(answer["_debug_info"]["rendered_template"], "<|turn>hello<turn|>");

    server.add("second", &weights("gemma4", "second"));
    assert_eq!(server.post("/tokenize", &json!({ "content": "ab" })).status, 400, "which model?");
    engine.loaded.lock().unwrap().clear();
    server.post("/api/generate", &json!({ "model": "gemma4" }));
    let answer = server.post("/tokenize", &json!({ "content": "ab" }));
    assert_eq!(answer.json(), json!({ "tokens": [97, 98] }));
    let answer = server.post("/tokenize", &json!({ "content": "a", "with_pieces": true }));
    assert_eq!(answer.json(), json!({ "tokens": [{ "id": 97, "piece": "a" }] }));
    let answer = server.post("/detokenize", &json!({ "tokens": [104, 105] }));
    assert_eq!(answer.json(), json!({ "content": "hi" }));
    let request = json!({ "messages": user("hello") });
    assert_eq!(server.post("/apply-template", &request).json()["prompt"], "<|turn>hello<turn|>");
    let props = server.get("/props").json();
    assert_eq!(props["default_generation_settings"]["n_ctx"], 4096);
    assert_eq!(props["total_slots"], 3);

    assert_eq!(server.get("/lora-adapters").json()[0]["scale"], 1.0);
    assert_eq!(
        server.post("/lora-adapters?model=gemma4", &json!([{ "id": 0, "scale": 0.5 }])).status,
        200
    );
    assert_eq!(server.get("/lora-adapters").json()[0]["scale"], 0.5);
    let mut request = body("/v1/chat/completions", "hi", false);
    request["lora"] = json!([{ "id": 0, "scale": 0.25 }]);
    server.post("/v1/chat/completions", &request);
    assert_eq!(engine.last().lora.unwrap()[0].scale, 0.25);
    assert_eq!(engine.cancelled.load(Ordering::SeqCst), 0);
}
