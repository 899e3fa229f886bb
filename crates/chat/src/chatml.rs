//! ChatML: SmolLM2 and Qwen 2, 2.5 and 3, with tools in Hermes' notation.

use serde_json::Value;

use crate::markers::{IM_END, IM_START, JSON_CALL_CLOSE, JSON_CALL_OPEN, THINK_CLOSE, THINK_OPEN};
use crate::text::{declaration, python_object, split_system, text_of};
use crate::{ChatError, Conversation, Family, Message, Prompt, ToolCall};

const TOOLS_BEFORE: &str = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n\
    You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
const TOOLS_AFTER: &str = "\n</tools>\n\nFor each function call, return a json object with function name and \
    arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n\
    {\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>";

/// The family's default system message, for conversations without one.
fn default_system(family: Family) -> Option<&'static str> {
    match family {
        Family::SmolLm2 => {
            Some("You are a helpful AI assistant named SmolLM, trained by Hugging Face")
        }
        Family::Qwen2 => Some("You are a helpful assistant."),
        Family::Qwen25 => {
            Some("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.")
        }
        _ => None,
    }
}

/// Renders a conversation.
pub(crate) fn render(conversation: &Conversation, family: Family) -> Result<Prompt, ChatError> {
    if !conversation.tools.is_empty() && !family.has_tools() {
        return Err(ChatError::NoTools);
    }
    let mut out = Prompt::default();
    let (system, rest) = split_system(&conversation.messages);
    system_turn(&mut out, conversation, system, family)?;
    let last_query = rest.iter().rposition(is_query);
    for (i, message) in rest.iter().enumerate() {
        match message.role.as_str() {
            "assistant" => {
                let thinks = family == Family::Qwen3;
                let after_query = last_query.is_none_or(|query| i > query);
                let last = i + 1 == rest.len();
                assistant(&mut out, message, &Thoughts { thinks, after_query, last })?;
            }
            "tool" => {
                let is_tool = |m: Option<&Message>| m.is_some_and(|m| m.role == "tool");
                let first = !is_tool(i.checked_sub(1).and_then(|before| rest.get(before)));
                response(&mut out, message, first, !is_tool(rest.get(i + 1)))?;
            }
            role => {
                open(&mut out, role);
                out.trusted("\n");
                out.untrusted(&text_of(message)?);
                close(&mut out);
            }
        }
    }
    if conversation.add_generation_prompt {
        open(&mut out, "assistant");
        out.trusted("\n");
        if family == Family::Qwen3 && !conversation.thinking {
            out.trusted("<think>\n\n</think>\n\n");
        }
    }
    Ok(out)
}

fn open(out: &mut Prompt, role: &str) {
    out.trusted(IM_START);
    match role {
        "system" | "user" | "assistant" | "tool" => out.trusted(role),
        _ => out.untrusted(role),
    }
}

fn close(out: &mut Prompt) {
    out.trusted(IM_END);
    out.trusted("\n");
}

fn system_turn(
    out: &mut Prompt,
    conversation: &Conversation,
    system: Option<&Message>,
    family: Family,
) -> Result<(), ChatError> {
    let default = default_system(family);
    if conversation.tools.is_empty() && system.is_none() && default.is_none() {
        return Ok(());
    }
    open(out, "system");
    out.trusted("\n");
    match (system, default) {
        (Some(system), _) => out.untrusted(&text_of(system)?),
        (None, Some(default)) => out.trusted(default),
        (None, None) => {}
    }
    if !conversation.tools.is_empty() {
        out.trusted(if system.is_some() || default.is_some() { "\n\n" } else { "" });
        out.trusted(TOOLS_BEFORE);
        for tool in &conversation.tools {
            out.trusted("\n");
            out.untrusted(&declaration(tool, None));
        }
        out.trusted(TOOLS_AFTER);
    }
    close(out);
    Ok(())
}

/// A message written by the user: Qwen also puts tool results into user messages.
fn is_query(message: &Message) -> bool {
    let is_result =
        |text: String| text.starts_with("<tool_response>") && text.ends_with("</tool_response>");
    message.role == "user" && !text_of(message).is_ok_and(is_result)
}

/// How the thought of a message is rendered.
struct Thoughts {
    /// Whether the family thinks at all.
    thinks: bool,
    /// Whether the message follows the last user message: earlier thoughts are left out.
    after_query: bool,
    last: bool,
}

fn assistant(out: &mut Prompt, message: &Message, thoughts: &Thoughts) -> Result<(), ChatError> {
    let text = text_of(message)?;
    open(out, "assistant");
    if !thoughts.thinks {
        // A reply without text has no line for it.
        if !text.is_empty() || message.tool_calls.is_empty() {
            out.trusted("\n");
            out.untrusted(&text);
        }
        for call in &message.tool_calls {
            out.trusted("\n");
            json_call(out, call)?;
        }
        close(out);
        return Ok(());
    }
    let (thought, content) = match &message.reasoning {
        Some(thought) => (thought.as_str(), text.as_str()),
        None => split_thought(&text),
    };
    out.trusted("\n");
    if thoughts.after_query && (thoughts.last || !thought.is_empty()) {
        out.trusted("<think>\n");
        out.untrusted(thought.trim_matches('\n'));
        out.trusted("\n</think>\n\n");
        out.untrusted(content.trim_start_matches('\n'));
    } else {
        out.untrusted(content);
    }
    for (i, call) in message.tool_calls.iter().enumerate() {
        out.trusted(if i > 0 || !content.is_empty() { "\n" } else { "" });
        json_call(out, call)?;
    }
    close(out);
    Ok(())
}

/// The thought inside a text, and the text after it.
fn split_thought(text: &str) -> (&str, &str) {
    let Some((_, content)) = text.rsplit_once(THINK_CLOSE) else { return ("", text) };
    let before = text.split(THINK_CLOSE).next().unwrap_or_default().trim_end_matches('\n');
    let thought = before.rsplit(THINK_OPEN).next().unwrap_or_default();
    (thought.trim_start_matches('\n'), content.trim_start_matches('\n'))
}

fn json_call(out: &mut Prompt, call: &ToolCall) -> Result<(), ChatError> {
    out.trusted(JSON_CALL_OPEN);
    out.trusted("\n{\"name\": \"");
    out.untrusted(&call.name);
    out.trusted("\", \"arguments\": ");
    match &call.arguments {
        // Arguments sent as text keep their formatting.
        Value::String(text) if !text.trim().is_empty() => {
            call.decoded_arguments()?;
            out.untrusted(text);
        }
        _ => {
            out.untrusted(&python_object(call.decoded_arguments()?.as_ref()));
        }
    }
    out.trusted("}\n");
    out.trusted(JSON_CALL_CLOSE);
    Ok(())
}

/// The result of a call; consecutive results share one user turn.
fn response(out: &mut Prompt, message: &Message, first: bool, last: bool) -> Result<(), ChatError> {
    if first {
        open(out, "user");
    }
    out.trusted("\n<tool_response>\n");
    out.untrusted(&text_of(message)?);
    out.trusted("\n</tool_response>");
    if last {
        close(out);
    }
    Ok(())
}
