//! Llama 3 and its successors: headers around roles, tools in the first user message.

use serde_json::Value;

use crate::markers::{EOT, HEADER_CLOSE, HEADER_OPEN, LLAMA_BOS};
use crate::python::strip;
use crate::text::{declaration, python_json, python_object, split_system, text_of};
use crate::{ChatError, Content, Conversation, Family, Message, Prompt, ToolCall};

/// The default date of the templates. This crate has no clock.
const DATE: &str = "26 Jul 2024";

const TOOLS: &str = "Given the following functions, please respond with a JSON for a function call with its proper \
    arguments that best answers the given prompt.\n\nRespond in the format {\"name\": function name, \"parameters\": \
    dictionary of argument name and its value}.Do not use variables.\n\n";

/// Renders a conversation.
pub(crate) fn render(conversation: &Conversation, family: Family) -> Result<Prompt, ChatError> {
    let mut out = Prompt::default();
    out.trusted(LLAMA_BOS);
    let messages = match family {
        Family::Llama3 if !conversation.tools.is_empty() => return Err(ChatError::NoTools),
        Family::Llama3 => conversation.messages.as_slice(),
        _ => opening(&mut out, conversation)?,
    };
    for message in messages {
        match message.tool_calls.as_slice() {
            _ if matches!(message.role.as_str(), "tool" | "ipython") => {
                header(&mut out, "ipython");
                result(&mut out, message)?;
            }
            [] => {
                header(&mut out, &message.role);
                out.untrusted(strip(&text_of(message)?));
            }
            [call] => {
                header(&mut out, "assistant");
                json_call(&mut out, call)?;
            }
            calls => return Err(ChatError::OneCall { count: calls.len() }),
        }
        out.trusted(EOT);
    }
    if conversation.add_generation_prompt {
        header(&mut out, "assistant");
    }
    Ok(out)
}

/// Writes the system message and, with tools, the first user message; returns the remaining messages.
fn opening<'a>(
    out: &mut Prompt,
    conversation: &'a Conversation,
) -> Result<&'a [Message], ChatError> {
    let (system, messages) = split_system(&conversation.messages);
    let tools = &conversation.tools;
    header(out, "system");
    out.trusted(if tools.is_empty() { "" } else { "Environment: ipython\n" });
    out.trusted("Cutting Knowledge Date: December 2023\nToday Date: ");
    out.trusted(DATE);
    out.trusted("\n\n");
    if let Some(system) = system {
        out.untrusted(strip(&text_of(system)?));
    }
    out.trusted(EOT);
    if tools.is_empty() {
        return Ok(messages);
    }
    let role = |message: Option<&Message>| message.map(|m| m.role.clone()).unwrap_or_default();
    let Some((first, rest)) = messages.split_first() else {
        return Err(ChatError::RoleOrder { index: conversation.messages.len(), role: role(None) });
    };
    header(out, "user");
    out.trusted(TOOLS);
    for tool in tools {
        out.untrusted(&declaration(tool, Some(4)));
        out.trusted("\n\n");
    }
    out.untrusted(strip(&text_of(first)?));
    out.trusted(EOT);
    Ok(rest)
}

fn header(out: &mut Prompt, role: &str) {
    out.trusted(HEADER_OPEN);
    match role {
        "system" | "user" | "assistant" | "ipython" => out.trusted(role),
        _ => out.untrusted(role),
    }
    out.trusted(HEADER_CLOSE);
    out.trusted("\n\n");
}

fn json_call(out: &mut Prompt, call: &ToolCall) -> Result<(), ChatError> {
    out.trusted("{\"name\": \"");
    out.untrusted(&call.name);
    out.trusted("\", \"parameters\": ");
    out.untrusted(&python_object(call.decoded_arguments()?.as_ref()));
    out.trusted("}");
    Ok(())
}

/// The result of a call as JSON; text is quoted.
fn result(out: &mut Prompt, message: &Message) -> Result<(), ChatError> {
    match &message.content {
        Content::Other(value) => {
            let iterable = value.is_array() || value.is_object();
            let text =
                if iterable { python_json(value, None) } else { crate::python::display(value) };
            out.untrusted(&text);
        }
        _ => out.untrusted(&python_json(&Value::from(text_of(message)?), None)),
    }
    Ok(())
}
