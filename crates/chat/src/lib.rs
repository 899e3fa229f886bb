//! Renders messages to prompt text and parses model output into thoughts, text and tool calls.
//!
//! This crate knows neither tokens nor models. [`render`] writes a [`Conversation`] as the templates of a [`Family`] do,
//! [`Parser`] parses the model's output. Templates found in model files are recognised ([`Family::of_template`]); those of
//! no known family run in a sandbox ([`ChatTemplate`], feature `jinja`).
//!
//! ```
//! use rullama_chat::{Conversation, Event, Family, Parser, ParserOptions, RenderOptions, render};
//!
//! # fn main() -> Result<(), rullama_chat::ChatError> {
//! let conversation = Conversation::from_json(r#"{"messages": [{"role": "user", "content": "2+2?"}]}"#)?;
//! let prompt = render(&conversation, RenderOptions::for_model(Family::Small))?;
//! assert_eq!(prompt.text(), "<bos><|turn>user\n2+2?<turn|>\n<|turn>model\n");
//!
//! let mut parser = Parser::new(ParserOptions { start: prompt.end().into(), ..ParserOptions::default() });
//! let mut events = Vec::new();
//! parser.push("<|channel>thought\nEasy.<chan", &mut events);
//! parser.push("nel|>4", &mut events);
//! parser.finish(&mut events);
//! assert_eq!(events, [Event::Thinking("Easy.".into()), Event::Text("4".into())]);
//! # Ok(())
//! # }
//! ```

mod call;
mod capability;
mod channels;
mod chat_template;
mod chatml;
mod error;
mod family;
mod format;
mod function_gemma;
mod gemma3;
#[cfg(feature = "jinja")]
mod jinja;
mod json_call;
mod languages;
mod llama3;
mod markers;
mod markup;
mod message;
mod prompt;
mod python;
mod template;
mod text;
mod tool;
mod tools;

pub use call::{Call, parse_call};
pub use capability::{Capability, ModelRole};
pub use channels::{Event, Parser, ParserOptions, Start, Thinking};
pub use chat_template::{ChatTemplate, TemplateRunner, TemplateSource, TemplateTraits};
pub use error::ChatError;
pub use family::Family;
pub use markup::{CallSyntax, Output};
pub use message::{Content, Conversation, Message, Part, ReplyPrefix, ToolCall, ToolResponse};
pub use prompt::{Prompt, PromptEnd, Span};
pub use template::{RenderOptions, render};
pub use tool::Tool;
