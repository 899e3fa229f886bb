//! Rendering and parsing of the families other than Gemma 4, against the output of the original templates.

use rullama_chat::{
    ChatError, ChatTemplate, Conversation, Event, Family, Output, Parser, ParserOptions, PromptEnd,
    RenderOptions, Start, TemplateSource, Thinking, Tool, render,
};
use rullama_testkit::golden;
use serde_json::{Value, json};

fn golden3(key: &str) -> Vec<Value> {
    let file: Value = serde_json::from_slice(&golden("chat-template/golden3.json")).expect("JSON");
    file[key].as_array().expect("cases").clone()
}

fn conversation(case: &Value) -> Conversation {
    serde_json::from_value(case.clone()).expect("a conversation")
}

fn rendered(case: &Value, family: Family) -> Result<String, ChatError> {
    let prompt = render(&conversation(case), family)?;
    assert!(prompt.spans().windows(2).all(|pair| pair[0].trusted != pair[1].trusted));
    Ok(prompt.text())
}

#[test]
fn golden_cases_of_gemma3() {
    let cases = golden3("gemma3");
    assert_eq!(cases.len(), 14);
    for case in cases {
        let prompt = rendered(&case, Family::Gemma3);
        match case["prompt"].as_str() {
            Some(want) => assert_eq!(prompt.expect("a prompt"), want),
            None => {
                assert!(matches!(prompt, Err(ChatError::RoleOrder { .. })), "{case}");
                let repaired =
                    render(&conversation(&case), RenderOptions::for_model(Family::Gemma3));
                assert!(
                    repaired
                        .expect("rendered with repairs")
                        .text()
                        .ends_with("<start_of_turn>model\n")
                );
            }
        }
    }
}

#[test]
fn golden_cases_of_function_gemma() {
    for (key, family, count) in [
        ("functiongemma", Family::FunctionGemmaOllama, 18),
        ("functiongemma_documented", Family::FunctionGemma, 6),
    ] {
        let cases = golden3(key);
        assert_eq!(cases.len(), count);
        for case in cases {
            assert_eq!(
                rendered(&case, family).expect("a prompt"),
                case["prompt"].as_str().expect("text")
            );
        }
    }
}

#[test]
fn golden_replies_of_function_gemma() {
    let cases = golden3("functiongemma_parse");
    assert_eq!(cases.len(), 13);
    for case in cases {
        let text = case["text"].as_str().expect("text");
        let (content, _, calls) = said(text, Output::FunctionGemma, &[]);
        assert_eq!(content, case["content"].as_str().expect("text"), "{text}");
        assert_eq!(Value::Array(calls), case["calls"], "{text}");
    }
}

/// Text, thoughts and calls of a message, checked to be the same wherever it is split.
fn said(text: &str, output: Output, tools: &[Tool]) -> (String, String, Vec<Value>) {
    let options = ParserOptions { output, tools: tools.to_vec(), ..ParserOptions::default() };
    let parse = |pieces: Vec<&str>| {
        let mut parser = Parser::new(options.clone());
        let mut events = Vec::new();
        pieces.into_iter().for_each(|piece| parser.push(piece, &mut events));
        parser.finish(&mut events);
        events
    };
    let events = parse(vec![text]);
    assert_eq!(parse(text.split_inclusive(|_| true).collect()), events, "{text}");
    let (mut content, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for event in events {
        match event {
            Event::Text(piece) => content += &piece,
            Event::Thinking(piece) => thoughts += &piece,
            Event::ToolCall { name, arguments, .. } => {
                calls.push(json!({ "name": name, "arguments": arguments }))
            }
            Event::BadCall { .. } => {}
        }
    }
    (content, thoughts, calls)
}

/// Random conversations, rendered by the templates of released models: see `tools/chat-cases/families.py`.
#[test]
fn golden_cases_of_other_families() {
    let file = String::from_utf8(golden("chat-template/families.jsonl")).expect("UTF-8");
    let mut counts = [0; 5];
    for line in file.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let families = [
            ("qwen2", Family::Qwen2),
            ("qwen25", Family::Qwen25),
            ("qwen3", Family::Qwen3),
            ("llama3", Family::Llama3),
            ("llama31", Family::Llama31),
        ];
        for (count, (key, family)) in counts.iter_mut().zip(families) {
            match case.get(key) {
                None => {}
                Some(Value::String(want)) => {
                    assert_eq!(&rendered(&case, family).expect("a prompt"), want, "{key}: {line}");
                    *count += 1;
                }
                Some(_) => assert!(rendered(&case, family).is_err(), "{key}: {line}"),
            }
        }
    }
    assert!(counts.iter().all(|count| *count >= 15), "{counts:?}");
}

#[test]
fn golden_cases_of_smollm2() {
    let file: Value = serde_json::from_slice(&golden("tokenizer/smollm2.json")).expect("JSON");
    let cases = file["chat"].as_array().expect("cases");
    assert!(cases.len() >= 5);
    for case in cases {
        assert_eq!(
            rendered(case, Family::SmolLm2).expect("a prompt"),
            case["prompt"].as_str().expect("text")
        );
    }
}

#[test]
fn translations() {
    let case = json!({ "messages": [{ "role": "user", "content": [{
        "type": "text", "source_lang_code": "cs", "target_lang_code": "de-DE", "text": "Ahoj\n",
    }] }] });
    let want = "<bos><start_of_turn>user\nYou are a professional Czech (cs) to German (de-DE) translator. Your goal is to \
        accurately convey the meaning and nuances of the original Czech text while adhering to German grammar, vocabulary, \
        and cultural sensitivities.\nProduce only the German translation, without any additional explanations or commentary. \
        Please translate the following Czech text into German:\n\n\nAhoj<end_of_turn>\n<start_of_turn>model\n";
    assert_eq!(rendered(&case, Family::TranslateGemma).expect("a prompt"), want);
    let mut unknown = case.clone();
    unknown["messages"][0]["content"][0]["source_lang_code"] = json!("xx");
    let error = rendered(&unknown, Family::TranslateGemma).expect_err("no such language");
    assert!(matches!(error, ChatError::UnknownLanguage { code } if code == "xx"));
    let plain = json!({ "messages": [{ "role": "user", "content": "Translate this." }] });
    assert_eq!(
        rendered(&plain, Family::TranslateGemma).expect("a prompt"),
        rendered(&plain, Family::Gemma3).expect("a prompt")
    );
}

#[test]
fn tools_for_families_without_tools() {
    let case =
        json!({ "messages": [{ "role": "user", "content": "x" }], "tools": [{ "name": "f" }] });
    for family in Family::ALL {
        let refused = matches!(rendered(&case, family), Err(ChatError::NoTools));
        assert_eq!(refused, !family.has_tools(), "{family:?}");
    }
}

#[test]
fn user_text_yields_no_markers() {
    let text = "<|im_end|><start_of_turn><|eot_id|><escape><think></tool_call>";
    let case = json!({ "messages": [{ "role": "user", "content": text }, { "role": "assistant", "content": text }] });
    for family in Family::ALL {
        let prompt =
            render(&conversation(&case), RenderOptions::for_model(family)).expect("a prompt");
        let of_user =
            prompt.spans().iter().filter(|span| !span.trusted && span.text.contains("<escape>"));
        assert_eq!(of_user.count(), 2, "{family:?}");
        let trusted = prompt.spans().iter().filter(|span| span.trusted);
        assert!(!trusted.map(|span| span.text.as_str()).collect::<String>().contains("<escape>"));
    }
}

#[test]
fn thoughts_and_calls_in_tags() {
    let call =
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": \"x\"}}\n</tool_call>";
    let text = format!("<think>\nLet me see.\n</think>\n\nHere: 1 < 2 <b>\n{call}\n{call}");
    let (content, thoughts, calls) = said(&text, Output::Tagged, &[]);
    assert_eq!((content.as_str(), thoughts.as_str()), ("Here: 1 < 2 <b>", "Let me see."));
    let want = json!({ "name": "f", "arguments": { "b": 1, "a": "x" } });
    assert_eq!(calls, [want.clone(), want]);
    let nested = "<tool_call>{\"function\": {\"name\": \"g\", \"arguments\": \"{\\\"a\\\": 2}\"}}</tool_call>";
    assert_eq!(
        said(nested, Output::Tagged, &[]).2,
        [json!({ "name": "g", "arguments": { "a": 2 } })]
    );
    for bad in [
        "<tool_call>{\"name\": 1}</tool_call>",
        "<tool_call>f()</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": 3}",
    ] {
        assert_eq!(said(bad, Output::Tagged, &[]), (String::new(), String::new(), vec![]));
    }
}

#[test]
fn a_prompt_may_open_the_thought() {
    let mut parser = Parser::new(ParserOptions {
        output: Output::Tagged,
        start: Start::Thinking,
        thinking: Thinking::Show,
        tools: Vec::new(),
    });
    let mut events = Vec::new();
    parser.push("hm\n</think>\n\nYes", &mut events);
    parser.finish(&mut events);
    assert_eq!(events, [Event::Thinking("hm".into()), Event::Text("Yes".into())]);
}

#[test]
fn thoughts_of_medgemma() {
    let (content, thoughts, _) = said("<unused94>thought\nhm<unused95>Yes", Output::Gemma3, &[]);
    assert_eq!((content.as_str(), thoughts.as_str()), ("Yes", "hm"));
}

#[test]
fn medgemma_is_known_by_its_name_and_thinks_when_asked() {
    let template =
        "{% if messages[0]['role'] == 'system' %}{% endif %}<start_of_turn><end_of_turn>";
    let of = |name, template, token: &'static str| {
        let source = TemplateSource {
            template,
            bos: "<bos>",
            eos: "<eos>",
            name,
            architecture: "gemma3",
            has_token: &move |text| text == token,
            has_layer_inputs: false,
        };
        ChatTemplate::of_model(&source).expect("a template")
    };
    for name in ["MedGemma 1.5 4B It", "medgemma-27b-text-it"] {
        let model = of(name, None, "<start_of_turn>");
        assert_eq!((model.family(), model.thinks()), (Some(Family::MedGemma), true));
    }
    assert_eq!(of("Gemma 3 4b", None, "<start_of_turn>").family(), Some(Family::Gemma3));
    assert_eq!(of("MedGemma", None, "<|im_start|>").family(), Some(Family::ChatMl));
    #[cfg(not(feature = "jinja"))]
    assert_eq!(of("MedGemma", Some(template), "").family(), Some(Family::MedGemma));
    #[cfg(feature = "jinja")]
    {
        let model = of("MedGemma", Some(template), "");
        assert_eq!(
            (model.family(), model.output()),
            (None, Output::Gemma3),
            "it renders other text"
        );
    }

    let case = json!({ "messages": [
        { "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hi" },
    ] });
    let mut asked = conversation(&case);
    let plain = render(&asked, Family::MedGemma).expect("a prompt").text();
    assert_eq!(plain, render(&asked, Family::Gemma3).expect("a prompt").text());
    asked.thinking = true;
    assert_eq!(plain, render(&asked, Family::Gemma3).expect("a prompt").text());
    let instruction = "SYSTEM INSTRUCTION: think silently if needed.";
    assert_eq!(
        render(&asked, Family::MedGemma).expect("a prompt").text(),
        plain.replace("Be brief.", &format!("{instruction} Be brief."))
    );
    asked.messages.remove(0);
    assert_eq!(
        render(&asked, Family::MedGemma).expect("a prompt").text(),
        format!(
            "<bos><start_of_turn>user\n{instruction}\n\nHi<end_of_turn>\n<start_of_turn>model\n"
        )
    );
}

#[test]
fn calls_of_llama() {
    let tools: Vec<Tool> = vec![serde_json::from_value(json!({ "name": "f" })).expect("a tool")];
    let call = "{\"name\": \"f\", \"parameters\": {\"a\": [1, \"}\"]}}";
    let want = [json!({ "name": "f", "arguments": { "a": [1, "}"] } })];
    assert_eq!(said(call, Output::Llama3, &tools).2, want);
    assert_eq!(said(&format!("<|python_tag|>{call}"), Output::Llama3, &tools).2, want);
    // Without declared tools, or if it is not a call, JSON is text.
    for (text, tools) in
        [(call, &[][..]), ("{\"a\": 1}", &tools), ("{ not JSON", &tools), ("Hi {", &tools)]
    {
        assert_eq!(
            said(text, Output::Llama3, tools),
            (text.into(), String::new(), vec![]),
            "{text}"
        );
    }
}

#[test]
fn prompt_ends() {
    let waiting = json!({ "messages": [
        { "role": "user", "content": "x" },
        { "role": "assistant", "tool_calls": [{ "name": "f", "arguments": {} }] },
    ] });
    let end = |case: &Value, family| render(&conversation(case), family).expect("a prompt").end();
    assert_eq!(end(&waiting, Family::FunctionGemma), PromptEnd::ToolResult);
    let plain = json!({ "messages": [{ "role": "user", "content": "x" }] });
    for family in Family::ALL {
        assert_eq!(end(&plain, family), PromptEnd::Content, "{family:?}");
    }
}
