//! OpenAI's responses.

mod chat;
mod completions;
mod response_items;
mod responses;
mod transcriptions;

pub use chat::ChatWriter;
pub use completions::CompletionsWriter;
pub use responses::ResponsesWriter;
pub use transcriptions::TranscriptionWriter;

use crate::DoneReason;

/// `finish_reason`
fn finish_reason(reason: Option<&DoneReason>, has_calls: bool) -> &'static str {
    match reason {
        Some(DoneReason::Length) => "length",
        Some(DoneReason::ToolCalls) => "tool_calls",
        _ if has_calls => "tool_calls",
        _ => "stop",
    }
}
