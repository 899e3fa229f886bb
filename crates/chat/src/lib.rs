//! Messages to prompt text, and model output back to thinking, answer and tool calls.
//!
//! Text in, text out: this crate knows neither tokens nor models. [`render`] writes a [`Conversation`] the way the
//! Gemma 4 templates do, [`Parser`] splits what the model answers, and [`render_template`] is the door for a template
//! found in a model file.

mod call;
mod channels;
mod error;
mod family;
mod format;
#[cfg(feature = "jinja")]
mod jinja;
mod markers;
mod message;
mod prompt;
mod python;
mod sandbox;
mod template;
mod tool;
mod tools;

pub use call::{Call, parse_call};
pub use channels::{Event, Parser, ParserOptions, Start, Thinking};
pub use error::ChatError;
pub use family::{Family, TemplateKind, recognise};
pub use message::{Content, Conversation, Message, Part, ToolCall, ToolResponse};
pub use prompt::{Prompt, PromptEnd, Span};
pub use sandbox::{Limits, render_template};
pub use template::{RenderOptions, render};
pub use tool::Tool;
