//! Templates that something outside of the crate runs, as a page does: conversations and prompts cross a boundary as JSON.

use std::sync::Arc;

use rullama_chat::{
    ChatError, ChatTemplate, Conversation, Family, Output, Prompt, ReplyPrefix, Span,
    TemplateRunner, TemplateTraits,
};
use serde_json::json;

/// Writes the text of the first message between markers.
#[derive(Debug)]
struct Quoting;

impl TemplateRunner for Quoting {
    fn render(&self, conversation: &Conversation) -> Result<Prompt, ChatError> {
        let Some(message) = conversation.messages.first() else {
            return Err(ChatError::Runner { message: "no messages".into() });
        };
        let spans = json!([
            { "text": "<q>", "trusted": true },
            { "text": message.content, "trusted": false },
            { "text": "", "trusted": false },
            { "text": "</q>", "trusted": true },
        ]);
        Ok(Prompt::from_spans(serde_json::from_value::<Vec<Span>>(spans)?))
    }
}

fn template() -> ChatTemplate {
    let traits = TemplateTraits { output: Output::Llama3, has_tools: true, thinks: false };
    ChatTemplate::run_by(Arc::new(Quoting), traits)
}

fn conversation(text: &str) -> Conversation {
    let request = json!({ "messages": [{ "role": "user", "content": text }] });
    Conversation::from_json(&request.to_string()).expect("a conversation")
}

#[test]
fn a_runner_renders_and_the_prefix_follows() {
    let template = template();
    assert_eq!((template.family(), template.output()), (None, Output::Llama3));
    assert_eq!((template.has_tools(), template.thinks()), (true, false));
    let mut asked = conversation("a </q> b");
    asked.prefix = Some(ReplyPrefix { text: "Well".into(), thinking: None });
    let prompt = template.render(&asked, true).expect("a prompt");
    let span = |text: &str, trusted| Span { text: text.into(), trusted };
    let wanted =
        [span("<q>", true), span("a </q> b", false), span("</q>", true), span("Well", false)];
    assert_eq!(prompt.spans(), wanted);
    let error = template.render(&Conversation::default(), true).expect_err("no messages");
    assert_eq!(error.to_string(), "no messages");
}

#[test]
fn traits_cross_as_json() {
    let traits = template().traits().expect("traits");
    let text = serde_json::to_string(&traits).expect("JSON");
    assert_eq!(text, r#"{"output":"llama3","has_tools":true,"thinks":false}"#);
    assert_eq!(serde_json::from_str::<TemplateTraits>(&text).expect("traits"), traits);
    for output in Output::ALL {
        assert_eq!(serde_json::to_value(output).expect("JSON"), output.name());
    }
    assert_eq!(ChatTemplate::from(Family::Llama3).traits(), None);
}

#[test]
fn only_gemma_4_needs_no_runner() {
    for (template, needs) in [
        ("<|turn>{{ x }}<turn|><|think|>", false),
        ("<|turn>{{ x }}<turn|>", false),
        ("<|im_start|>{{ x }}<|im_end|>", true),
        ("[INST] {{ x }} [/INST]", true),
        ("", true),
    ] {
        assert_eq!(ChatTemplate::needs_runner(template), needs, "{template}");
    }
}

/// What a page's engine hands over gives the prompt that the template gives here.
#[test]
#[cfg(feature = "jinja")]
fn conversations_and_prompts_survive_json() {
    let template = ChatTemplate::new(
        "{{ bos_token }}{{ tools | tojson }}{% for m in messages %}[{{ m.role }}]{{ m | tojson }}{% endfor %}{{ enable_thinking }}",
        "<s>",
        "</s>",
    );
    let template = template.expect("it parses").expect("a template");
    let parameters =
        json!({ "type": "object", "properties": { "z": { "type": "number" }, "a": {} } });
    let call = json!({ "id": 7, "function": { "name": "f", "arguments": "{\"z\": 1.0, \"a\": [0.1, 12345678901234567890]}" } });
    let request = json!({
        "messages": [
            { "role": "system", "content": "Be <s> brief." },
            { "role": "user", "content": [{ "type": "text", "text": "[x|y]" }, { "type": "image_url", "image_url": { "url": "data:" } }, "bare"] },
            { "role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call] },
            { "role": "tool", "tool_call_id": 7, "content": 4.50, "name": "f" },
        ],
        "tools": [{ "name": "f", "parameters": parameters, "strict": true }],
        "thinking": true,
    });
    let here = Conversation::from_json(&request.to_string()).expect("a conversation");
    let text = serde_json::to_string(&here).expect("JSON");
    let there = Conversation::from_json(&text).expect("the same conversation");
    assert_eq!(here, there);
    let prompt = template.render(&here, true).expect("a prompt");
    assert_eq!(prompt, template.render(&there, true).expect("a prompt"));
    assert!(prompt.spans().iter().any(|span| !span.trusted), "{prompt}");
    let spans = serde_json::to_string(prompt.spans()).expect("JSON");
    let spans: Vec<Span> = serde_json::from_str(&spans).expect("spans");
    assert_eq!(Prompt::from_spans(spans), prompt);
}
