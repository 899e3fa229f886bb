//! FunctionGemma, as documented and as Ollama renders it.
//!
//! Calls and their results are inside the model's turn. Values have bare keys and strings between `<escape>` markers.

use serde_json::{Map, Number, Value};

use crate::format::{comma, sorted};
use crate::gemma3::{close_turn, open_turn};
use crate::markers::{
    BOS, ESCAPE, FUNCTION_CALL_CLOSE, FUNCTION_CALL_OPEN, FUNCTION_CLOSE, FUNCTION_OPEN,
    FUNCTION_RESPONSE_CLOSE, FUNCTION_RESPONSE_OPEN,
};
use crate::python::{self, display, strip};
use crate::text::text_of;
use crate::{ChatError, Conversation, Message, Prompt, Tool, ToolCall};

/// Enables tool use if there is no system message.
const PREAMBLE: &str = "You are a model that can do function calling with the following functions";
/// The text that Ollama always writes before declarations.
const OLLAMA_PREAMBLE: &str = "You can do function calling with the following functions:";

/// Renders a conversation in Ollama's form or the documented one.
pub(crate) fn render(conversation: &Conversation, ollama: bool) -> Result<Prompt, ChatError> {
    let mut out = Prompt::default();
    out.trusted(BOS);
    let writer = Writer { ollama };
    let (system, messages) = match conversation.messages.split_first() {
        Some((first, rest)) if matches!(first.role.as_str(), "system" | "developer") => {
            (Some(first), rest)
        }
        _ => (None, conversation.messages.as_slice()),
    };
    writer.developer_turn(&mut out, system, &conversation.tools)?;
    let open = writer.turns(&mut out, messages)?;
    if conversation.add_generation_prompt && !open {
        open_turn(&mut out, "model");
    }
    Ok(out)
}

struct Writer {
    ollama: bool,
}

impl Writer {
    fn developer_turn(
        &self,
        out: &mut Prompt,
        system: Option<&Message>,
        tools: &[Tool],
    ) -> Result<(), ChatError> {
        let text = system.map(text_of).transpose()?.unwrap_or_default();
        let text = strip(&text);
        if text.is_empty() && tools.is_empty() {
            return Ok(());
        }
        open_turn(out, "developer");
        out.untrusted(text);
        match self.ollama {
            _ if tools.is_empty() => {}
            true if text == OLLAMA_PREAMBLE => {}
            true => {
                out.trusted(if text.is_empty() { "" } else { "\n" });
                out.trusted(OLLAMA_PREAMBLE);
            }
            false if text.is_empty() => out.trusted(PREAMBLE),
            false => {}
        }
        for tool in tools {
            self.declare(out, tool);
        }
        close_turn(out);
        Ok(())
    }

    /// Writes the messages and returns whether the model's turn is left open.
    fn turns(&self, out: &mut Prompt, messages: &[Message]) -> Result<bool, ChatError> {
        // Whether the last text written is a tool result, after which the turn continues.
        let mut responded = false;
        let mut at = 0;
        while let Some(message) = messages.get(at) {
            at += 1;
            let is_model = matches!(message.role.as_str(), "assistant" | "model");
            let continues = responded && (is_model || self.ollama);
            if responded && !continues {
                close_turn(out);
            }
            if !continues {
                open_turn(out, &message.role);
            }
            out.untrusted(strip(&text_of(message)?));
            for call in &message.tool_calls {
                self.call(out, call)?;
            }
            let results = messages[at..].iter().take_while(|m| m.role == "tool");
            let mut count = 0;
            for result in results {
                self.response(out, name_of(result, count, &message.tool_calls), &text_of(result)?);
                count += 1;
            }
            at += count;
            responded = count > 0;
            let waits = !message.tool_calls.is_empty() && !responded && at == messages.len();
            if waits && !self.ollama {
                out.trusted(FUNCTION_RESPONSE_OPEN);
                return Ok(true);
            }
            if !responded {
                close_turn(out);
            }
        }
        Ok(responded)
    }

    fn call(&self, out: &mut Prompt, call: &ToolCall) -> Result<(), ChatError> {
        out.trusted(FUNCTION_CALL_OPEN);
        out.trusted("call:");
        out.untrusted(&call.name);
        out.trusted("{");
        self.pairs(out, call.decoded_arguments()?.as_ref());
        out.trusted("}");
        out.trusted(FUNCTION_CALL_CLOSE);
        Ok(())
    }

    /// A result: the entries of an object, or another value, which has no key in Ollama's form.
    fn response(&self, out: &mut Prompt, name: &str, text: &str) {
        out.trusted(FUNCTION_RESPONSE_OPEN);
        out.trusted("response:");
        out.untrusted(name);
        out.trusted("{");
        match serde_json::from_str(text) {
            Ok(Value::Object(pairs)) if !self.ollama => self.pairs(out, &pairs),
            _ => {
                out.trusted(if self.ollama { "" } else { "value:" });
                escaped(out, text);
            }
        }
        out.trusted("}");
        out.trusted(FUNCTION_RESPONSE_CLOSE);
    }

    fn pairs(&self, out: &mut Prompt, map: &Map<String, Value>) {
        for (i, (key, value)) in sorted(map).into_iter().enumerate() {
            comma(out, i);
            out.untrusted(key);
            out.trusted(":");
            self.value(out, value);
        }
    }

    fn value(&self, out: &mut Prompt, value: &Value) {
        match value {
            Value::Null => out.trusted("null"),
            Value::Bool(true) => out.trusted("true"),
            Value::Bool(false) => out.trusted("false"),
            Value::Number(n) => out.trusted(&self.number(n)),
            Value::String(text) => escaped(out, text),
            Value::Array(items) => {
                out.trusted("[");
                for (i, item) in items.iter().enumerate() {
                    comma(out, i);
                    self.value(out, item);
                }
                out.trusted("]");
            }
            Value::Object(map) => {
                out.trusted("{");
                self.pairs(out, map);
                out.trusted("}");
            }
        }
    }

    /// Ollama leaves out the fraction of whole numbers.
    fn number(&self, n: &Number) -> String {
        match n.as_f64() {
            Some(x) if self.ollama && x.fract() == 0.0 && x.abs() < 1e15 => (x as i64).to_string(),
            _ => python::number(n),
        }
    }

    fn declare(&self, out: &mut Prompt, tool: &Tool) {
        out.trusted(FUNCTION_OPEN);
        out.trusted("declaration:");
        out.untrusted(tool.name());
        out.trusted("{description:");
        escaped(out, &string(tool.function.get("description")));
        if let Some(Value::Object(parameters)) = tool.function.get("parameters") {
            out.trusted(",parameters:{");
            self.members(out, parameters);
            out.trusted("type:");
            escaped(out, &kind(parameters, "OBJECT"));
            out.trusted("}");
        }
        out.trusted("}");
        out.trusted(FUNCTION_CLOSE);
    }

    /// The properties of an object and its required properties, each followed by a comma.
    fn members(&self, out: &mut Prompt, schema: &Map<String, Value>) {
        if let Some(Value::Object(properties)) = schema.get("properties").filter(|p| filled(p)) {
            out.trusted("properties:{");
            for (i, (name, property)) in sorted(properties).into_iter().enumerate() {
                comma(out, i);
                out.untrusted(name);
                out.trusted(":{description:");
                escaped(out, &string(property.get("description")));
                out.trusted(",");
                self.schema(out, property);
                out.trusted("}");
            }
            out.trusted("},");
        }
        if let Some(Value::Array(names)) = schema.get("required").filter(|names| filled(names)) {
            out.trusted("required:[");
            for (i, name) in names.iter().enumerate() {
                comma(out, i);
                escaped(out, &display(name));
            }
            out.trusted("],");
        }
    }

    /// The keywords of a schema other than its description; in Ollama's form only the type.
    fn schema(&self, out: &mut Prompt, schema: &Value) {
        let empty = Map::new();
        let schema = schema.as_object().unwrap_or(&empty);
        let kind = kind(schema, "STRING");
        if !self.ollama {
            if let Some(values @ Value::Array(_)) = schema.get("enum").filter(|v| filled(v)) {
                out.trusted("enum:");
                self.value(out, values);
                out.trusted(",");
            }
            if let Some(items) = schema.get("items").filter(|items| filled(items)) {
                out.trusted("items:{");
                self.schema(out, items);
                out.trusted("},");
            }
            self.members(out, schema);
        }
        out.trusted("type:");
        escaped(out, &kind);
    }
}

/// The tool that a result belongs to: by the call's id, by the message's name, or by the order of the calls.
fn name_of<'m>(result: &'m Message, place: usize, calls: &'m [ToolCall]) -> &'m str {
    let by_id = calls.iter().find(|call| call.id.is_some() && call.id == result.tool_call_id);
    let call = by_id.map(|call| call.name.as_str());
    let by_place = || calls.get(place).map(|call| call.name.as_str());
    call.or(result.name.as_deref()).or_else(by_place).unwrap_or("unknown")
}

fn escaped(out: &mut Prompt, text: &str) {
    out.trusted(ESCAPE);
    // A quote marker inside would end the string: the notation has no escapes.
    out.untrusted(text);
    out.trusted(ESCAPE);
}

fn string(value: Option<&Value>) -> String {
    value.map(display).unwrap_or_default()
}

/// The type in capitals; the first of several.
fn kind(schema: &Map<String, Value>, default: &str) -> String {
    let first = |value: &Value| match value {
        Value::Array(kinds) => kinds.first().map(display),
        other => Some(display(other)),
    };
    let kind = schema.get("type").and_then(first).filter(|kind| !kind.is_empty());
    kind.map_or_else(|| default.to_owned(), |kind| kind.to_uppercase())
}

fn filled(value: &Value) -> bool {
    python::truthy(value)
}
