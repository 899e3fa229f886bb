//! Transcriptions.

use serde_json::{Value, json};

use super::super::{Reply, ReplyWriter, SSE, Usage, frame};
use crate::{Dialect, Environment, GenerationEvent};

/// Writes responses of `/v1/audio/transcriptions`. For the format `text`, the body's field `text` is the whole response.
#[derive(Debug, Clone, Default)]
pub struct TranscriptionWriter {
    text: String,
    usage: Usage,
    is_finished: bool,
}

impl TranscriptionWriter {
    /// A writer.
    pub fn new() -> Self {
        Self::default()
    }
}

impl ReplyWriter for TranscriptionWriter {
    fn content_type(&self) -> &'static str {
        SSE
    }

    fn event(&mut self, _: &mut dyn Environment, event: &GenerationEvent, out: &mut Vec<u8>) {
        if self.is_finished {
            return;
        }
        match event {
            GenerationEvent::Started { .. } => self.usage.count(event),
            GenerationEvent::Text { choice: 0, text, .. } if !text.is_empty() => {
                self.text.push_str(text);
                frame::data(out, &json!({ "type": "transcript.text.delta", "delta": text }));
            }
            GenerationEvent::Done { choice: 0, .. } => {
                self.is_finished = true;
                self.usage.count(event);
                let (text, usage) = (&self.text, self.usage.transcription());
                let done = json!({ "type": "transcript.text.done", "text": text, "usage": usage });
                frame::data(out, &done);
            }
            GenerationEvent::Failed(error) => {
                self.is_finished = true;
                frame::data(out, &error.body(Dialect::OpenAi));
            }
            _ => {}
        }
    }

    fn keep_alive(&mut self, _: &mut dyn Environment, out: &mut Vec<u8>) {
        if !self.is_finished {
            frame::comment(out);
        }
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn body(&mut self, _: &mut dyn Environment, reply: &Reply) -> Value {
        json!({ "text": reply.first().text(), "usage": reply.usage.transcription() })
    }
}
