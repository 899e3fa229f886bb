//! Every family that the runtime knows is served, with its template, stops and tools.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::server::{FAMILIES, Running, med_gemma};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| Running::start(|options| options.open.context = Some(1024)))
}

/// What the template of a family writes around a user's message.
fn markers(model: &str) -> [&'static str; 2] {
    match model {
        "gemma4" => ["<|turn>user\n", "<|turn>model\n"],
        "gemma3" => ["<start_of_turn>user\n", "<start_of_turn>model\n"],
        "llama3" => [
            "<|start_header_id|>user<|end_header_id|>",
            "<|start_header_id|>assistant<|end_header_id|>",
        ],
        _ => ["<|im_start|>user\n", "<|im_start|>assistant\n"],
    }
}

fn chat(model: &str, more: Value) -> Value {
    let mut request = json!({
        "model": model, "messages": [{ "role": "user", "content": "hi" }], "temperature": 0, "max_tokens": 6,
    });
    let Value::Object(more) = more else { panic!("{more} is no object") };
    for (name, value) in more {
        request[name] = value;
    }
    request
}

#[test]
fn every_family_of_the_runtime_is_there() {
    // The runtime's list and the server's must not drift apart: each architecture is in one of these files.
    let tags = server().get("/api/tags");
    let listed: Vec<&str> = tags["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["details"]["family"].as_str().unwrap())
        .collect();
    for family in rullama_models::family::Family::ALL {
        let architecture = family.architecture;
        assert!(listed.contains(&architecture), "{architecture} is not served: {listed:?}");
    }
}

#[test]
fn they_chat_with_their_own_templates() {
    for (model, _) in FAMILIES {
        let render = json!({
            "model": model, "messages": [{ "role": "user", "content": "hi" }], "_debug_render_only": true,
        });
        let rendered = server().post("/api/chat", &render);
        let prompt = rendered["_debug_info"]["rendered_template"].as_str().unwrap();
        for marker in markers(model) {
            assert!(prompt.contains(marker), "{model}: {prompt}");
        }
        let whole = server().post("/v1/chat/completions", &chat(model, json!({})));
        let usage = &whole["usage"];
        assert!(usage["completion_tokens"].as_u64().unwrap() >= 1, "{model}: {whole}");
        let again = server().post("/v1/chat/completions", &chat(model, json!({})));
        assert_eq!(whole["choices"], again["choices"], "{model}");
        let stream = server().send("/v1/chat/completions", &chat(model, json!({ "stream": true })));
        assert!(stream.1.ends_with("data: [DONE]\n\n"), "{model}: {}", stream.1);
        // The next turn has what was said in the template's form.
        let turns = json!([
            { "role": "user", "content": "hi" }, { "role": "assistant", "content": "hello" }, { "role": "user", "content": "bye" },
        ]);
        let next =
            server().post("/v1/chat/completions", &chat(model, json!({ "messages": turns })));
        assert!(
            next["usage"]["prompt_tokens"].as_u64() > usage["prompt_tokens"].as_u64(),
            "{model}: {next}"
        );
    }
}

#[test]
fn demanded_calls_are_made_in_every_notation() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "unit": { "enum": ["C", "F"] }, "days": { "type": "integer", "minimum": 1, "maximum": 7 },
        },
        "required": ["unit", "days"],
    });
    let tool =
        json!({ "type": "function", "function": { "name": "weather", "parameters": parameters } });
    let choice = json!({ "type": "function", "function": { "name": "weather" } });
    for model in FAMILIES.map(|(model, _)| model).into_iter().chain(["functiongemma"]) {
        let more = json!({
            "tools": [tool], "tool_choice": choice, "max_tokens": 400, "reasoning_effort": "none", "temperature": 1, "seed": 3,
        });
        let (status, text) = server().send("/v1/chat/completions", &chat(model, more));
        // Templates of these files declare no tools.
        if ["gemma3", "smollm2", "qwen2", "qwen3"].contains(&model) {
            assert_eq!(status, 400, "{text}");
            assert!(text.contains("does not support tools"), "{text}");
            continue;
        }
        assert_eq!(status, 200, "{model}: {text}");
        let reply: Value = serde_json::from_str(&text).unwrap();
        let choice = &reply["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{model}: {text}");
        let call = &choice["message"]["tool_calls"][0]["function"];
        assert_eq!(call["name"], "weather", "{model}");
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(["C", "F"].contains(&arguments["unit"].as_str().unwrap()), "{model}: {arguments}");
        let days = arguments["days"].as_i64().unwrap();
        assert!((1..=7).contains(&days), "{model}: {arguments}");
        assert_eq!(arguments.as_object().unwrap().len(), 2, "{model}: {arguments}");
    }
}

#[test]
fn function_gemma_has_its_own_form_of_calls() {
    let shown = server().post("/api/show", &json!({ "model": "functiongemma" }));
    assert_eq!(shown["capabilities"], json!(["completion", "tools"]), "{shown}");
    let tool = json!({
        "type": "function",
        "function": {
            "name": "weather", "description": "Get weather",
            "parameters": {
                "type": "object", "properties": { "city": { "type": "string", "description": "City" } },
            },
        },
    });
    let call = json!({ "function": { "name": "weather", "arguments": { "city": "Paris" } } });
    let messages = json!([
        { "role": "user", "content": "Weather?" },
        { "role": "assistant", "content": "", "tool_calls": [call] },
        { "role": "tool", "tool_name": "weather", "content": "sunny" },
    ]);
    let request = json!({
        "model": "functiongemma", "messages": messages, "tools": [tool], "_debug_render_only": true,
    });
    let rendered = server().post("/api/chat", &request);
    let prompt = rendered["_debug_info"]["rendered_template"].as_str().unwrap();
    for part in [
        "<start_of_turn>developer\n",
        "<start_function_declaration>declaration:weather{description:<escape>Get weather<escape>,",
        "properties:{city:{description:<escape>City<escape>,type:<escape>STRING<escape>}}",
        "<start_function_call>call:weather{city:<escape>Paris<escape>}<end_function_call>\
         <start_function_response>response:weather{",
    ] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    // The model goes on in the turn in which it called.
    assert!(prompt.ends_with("<end_function_response>"), "{prompt}");
}

#[test]
fn med_gemma_thinks() {
    let shown = server().post("/api/show", &json!({ "model": "medgemma" }));
    assert_eq!(shown["capabilities"], json!(["completion", "thinking"]), "{shown}");
    let rendered = |think: bool| {
        let messages = json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "hi" }]);
        let request = json!({
            "model": "medgemma", "messages": messages, "think": think, "_debug_render_only": true,
        });
        let rendered = server().post("/api/chat", &request);
        rendered["_debug_info"]["rendered_template"].as_str().unwrap().to_owned()
    };
    let plain = "<bos><start_of_turn>user\nBe brief.\n\nhi<end_of_turn>\n<start_of_turn>model\n";
    assert_eq!(rendered(false), plain);
    let instruction = "SYSTEM INSTRUCTION: think silently if needed. Be brief.";
    assert_eq!(rendered(true), plain.replace("Be brief.", instruction));

    // A random model: the grammar allows the reply or a thought before it, the bias makes it open a thought, and close it by chance.
    let bias: serde_json::Map<String, Value> = (0..)
        .zip(&med_gemma().1)
        .filter_map(|(id, token): (u32, _)| match token.as_str() {
            "<unused95>" => Some((id.to_string(), json!(4))),
            "<0x59>" | "Y" | "Ye" | "Yes" => Some((id.to_string(), json!(-100))),
            _ => None,
        })
        .collect();
    let more = json!({
        "grammar": "root ::= \"Yes\"", "max_tokens": 500, "temperature": 1, "seed": 1, "logit_bias": bias,
    });
    let reply = server().post("/v1/chat/completions", &chat("medgemma", more.clone()));
    let message = &reply["choices"][0]["message"];
    assert_eq!(message["content"], "Yes", "{reply}");
    let thought = message["reasoning"].as_str().unwrap_or_else(|| panic!("{reply}"));
    assert!(!thought.is_empty() && !thought.contains("<unused"), "{thought}");
    let mut more = more;
    more["stream"] = true.into();
    let (_, stream) = server().send("/v1/chat/completions", &chat("medgemma", more));
    let deltas = stream.lines().filter_map(|line| line.strip_prefix("data: {"));
    let deltas: Vec<Value> =
        deltas.map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap()).collect();
    let said = |field: &str| -> String {
        let piece = |delta: &Value| delta["choices"][0]["delta"][field].as_str().map(String::from);
        deltas.iter().filter_map(piece).collect()
    };
    assert_eq!((said("reasoning").as_str(), said("content").as_str()), (thought, "Yes"));
}
