//! Runs templates of no known family in a sandbox, with Hugging Face's conventions.
//!
//! Templates are untrusted programs. They see only the conversation: no files, no clock, no other templates. Their size,
//! steps, recursion, memory and output are limited.

mod budget;
mod checks;
mod compile;
mod environment;
mod filters;
mod messages;

use std::sync::Arc;

use minijinja::machinery::{Vm, make_string_output};
use minijinja::{AutoEscape, Error, Value as JinjaValue};
use serde_json::{Map, Value, json};

use crate::{ChatError, Conversation, Prompt, TemplateRunner};
use budget::{Budget, size};
use compile::Program;
use environment::environment;
use messages::{message, shielded, unshielded};

/// The longest template in bytes. Real ones have a few thousand.
const SOURCE_LIMIT: usize = 256 << 10;
/// Bytes of output allowed in addition to four times the conversation.
const OUTPUT_SLACK: usize = 16 << 20;

/// A template of a model file.
#[derive(Debug, Clone)]
pub(crate) struct JinjaTemplate {
    source: String,
    /// Whether the template reads lists of parts. Others can only concatenate strings.
    takes_parts: bool,
    bos: String,
    eos: String,
}

impl JinjaTemplate {
    /// Checks the size and the syntax of a template.
    pub(crate) fn new(source: &str, bos: &str, eos: &str) -> Result<Self, ChatError> {
        if source.len() > SOURCE_LIMIT {
            let message =
                format!("it is {} bytes long, more than the {SOURCE_LIMIT} allowed", source.len());
            return Err(ChatError::Template { message });
        }
        Program::new(source, &Budget::unlimited()).map_err(|error| failed(&error))?;
        let takes_parts = source.contains("'text'") || source.contains("\"text\"");
        Ok(Self { source: source.into(), takes_parts, bos: bos.into(), eos: eos.into() })
    }

    fn run(&self, context: &Value) -> Result<String, Error> {
        let context = Budget::unlimited().adopt(JinjaValue::from_serialize(context))?;
        let budget = Arc::new(Budget::new(size(&context).0));
        let environment = environment(&budget);
        let program = Program::new(&self.source, &budget)?;
        let mut text = String::new();
        Vm::new(&environment).eval(
            &program.instructions,
            context,
            &program.blocks,
            &mut make_string_output(&mut text),
            AutoEscape::None,
        )?;
        Ok(text)
    }
}

impl TemplateRunner for JinjaTemplate {
    fn render(&self, conversation: &Conversation) -> Result<Prompt, ChatError> {
        let messages = conversation.messages.iter().map(|m| message(m, self.takes_parts));
        let messages = messages.collect::<Result<Vec<Value>, _>>()?;
        let tool = |function: &Map<String, Value>| {
            let function = shielded(&Value::Object(function.clone()), &[]);
            json!({ "type": "function", "function": function })
        };
        let tools: Vec<Value> = conversation.tools.iter().map(|t| tool(&t.function)).collect();
        let context = json!({
            "messages": messages,
            "tools": if tools.is_empty() { Value::Null } else { tools.into() },
            "add_generation_prompt": conversation.add_generation_prompt,
            "enable_thinking": conversation.thinking,
            "preserve_thinking": conversation.preserve_thinking,
            "bos_token": self.bos,
            "eos_token": self.eos,
        });
        let limit = 4 * context.to_string().len() + OUTPUT_SLACK;
        let text = self.run(&context).map_err(|error| failed(&error))?;
        if text.len() > limit {
            let message =
                format!("its output has {} bytes, more than the {limit} allowed", text.len());
            return Err(ChatError::Template { message });
        }
        Ok(unshielded(&text))
    }
}

fn failed(error: &Error) -> ChatError {
    // The message of `raise_exception`, or the engine's with the line number.
    let detail = error.detail().unwrap_or_default();
    let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
    let message: String = format!("{}: {detail}{line}", error.kind()).chars().take(500).collect();
    ChatError::Template { message }
}
