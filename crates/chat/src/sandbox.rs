//! The door for templates found in model files: known families go to the native renderer, others into a sandbox.

use crate::{ChatError, Conversation, Prompt, RenderOptions, TemplateKind, recognise, render};

/// What a foreign template may use up. Reaching a limit is an error, never a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Length of the template.
    pub template_bytes: usize,
    /// Length of the prompt it writes.
    pub output_bytes: usize,
    /// Work: characters and elements touched or made. It bounds time and memory.
    pub steps: u64,
    /// Depth of nested statements, expressions and macro calls. The default fits a stack of one megabyte.
    pub depth: usize,
}

impl Default for Limits {
    /// Ample for a conversation that fills a long context, and a second or two at worst.
    fn default() -> Self {
        Self { template_bytes: 256 << 10, output_bytes: 16 << 20, steps: 64 << 20, depth: 200 }
    }
}

/// Renders a conversation with the template text of a model file.
///
/// A template of a known family is not run: the native renderer takes its place, repairs included. Another one runs
/// in a sandbox if the crate has its `jinja` feature, and is refused otherwise. A foreign template's prompt is one
/// trusted span, since nothing tells its own words from those of the messages: message text can forge markers there.
pub fn render_template(
    template: &str,
    conversation: &Conversation,
    limits: &Limits,
) -> Result<Prompt, ChatError> {
    match recognise(template) {
        TemplateKind::Known(family) => render(conversation, RenderOptions::for_model(family)),
        TemplateKind::Foreign => foreign(template, conversation, limits),
    }
}

#[cfg(not(feature = "jinja"))]
fn foreign(
    _template: &str,
    _conversation: &Conversation,
    _limits: &Limits,
) -> Result<Prompt, ChatError> {
    Err(ChatError::ForeignTemplate)
}

#[cfg(feature = "jinja")]
fn foreign(
    template: &str,
    conversation: &Conversation,
    limits: &Limits,
) -> Result<Prompt, ChatError> {
    let text = crate::jinja::run(template, &variables(conversation)?, limits)?;
    let mut prompt = Prompt::default();
    prompt.trusted(&text);
    Ok(prompt)
}

/// What a template finds under the names that chat templates agree on.
#[cfg(feature = "jinja")]
fn variables(
    conversation: &Conversation,
) -> Result<serde_json::Map<String, serde_json::Value>, ChatError> {
    use serde_json::{Value, json};

    let mut messages = Vec::new();
    for message in &conversation.messages {
        let mut calls = Vec::new();
        for call in &message.tool_calls {
            let arguments = call.decoded_arguments()?;
            calls.push(json!({
                "id": call.id, "type": "function", "function": { "name": call.name, "arguments": arguments },
            }));
        }
        let mut fields = serde_json::to_value(message)?;
        if !calls.is_empty() {
            fields["tool_calls"] = Value::Array(calls);
        }
        if let Some(reasoning) = &message.reasoning {
            fields["reasoning_content"] = Value::from(reasoning.as_str());
        }
        messages.push(fields);
    }
    let mut variables = serde_json::Map::new();
    variables.insert("messages".into(), Value::Array(messages));
    if !conversation.tools.is_empty() {
        variables.insert("tools".into(), serde_json::to_value(&conversation.tools)?);
    }
    variables.insert("add_generation_prompt".into(), conversation.add_generation_prompt.into());
    variables.insert("enable_thinking".into(), conversation.thinking.into());
    variables.insert("preserve_thinking".into(), conversation.preserve_thinking.into());
    variables.insert("bos_token".into(), crate::markers::BOS.into());
    variables.insert("eos_token".into(), crate::markers::EOS.into());
    Ok(variables)
}
