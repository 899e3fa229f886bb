//! A rendered prompt: text that records which spans the template wrote and which are untrusted.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::markers::{
    CHANNEL_OPEN, FUNCTION_RESPONSE_OPEN, RESPONSE_OPEN, THINK_OPEN, THOUGHT_LABEL, TURN_CLOSE,
};

/// A span of prompt text.
///
/// Markers (control tokens) occur only in trusted spans; the same characters in an untrusted span are ordinary text. Span
/// boundaries are not token boundaries: a tokenizer finds the markers in trusted spans and encodes everything between two
/// markers as one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The text, never empty.
    pub text: String,
    /// Whether the template wrote it, as opposed to a message, a tool or an argument.
    pub trusted: bool,
}

/// A prompt for a model to continue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    spans: Vec<Span>,
}

/// What the model continues at the end of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptEnd {
    /// The next text is content, or a thought the model opens itself.
    Content,
    /// The next text continues a thought that the prompt has opened.
    Thinking,
    /// A tool call needs its result: nothing should be sampled here.
    ToolResult,
}

impl Prompt {
    /// The spans in order; adjacent ones differ in trust.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// A prompt of these spans.
    pub fn from_spans(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut prompt = Self::default();
        for Span { text, trusted } in spans {
            prompt.push(&text, trusted);
        }
        prompt
    }

    /// The prompt as one string.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// What the model is expected to write next.
    pub fn end(&self) -> PromptEnd {
        let opened_thought = |text: &str| {
            text.strip_suffix(THOUGHT_LABEL).is_some_and(|before| before.ends_with(CHANNEL_OPEN))
                || text.trim_end_matches('\n').ends_with(THINK_OPEN)
        };
        let waits =
            |text: &str| text.ends_with(RESPONSE_OPEN) || text.ends_with(FUNCTION_RESPONSE_OPEN);
        match self.spans.last() {
            Some(Span { text, trusted: true }) if waits(text) => PromptEnd::ToolResult,
            Some(Span { text, trusted: true }) if opened_thought(text) => PromptEnd::Thinking,
            _ => PromptEnd::Content,
        }
    }

    /// Appends text of the template.
    pub(crate) fn trusted(&mut self, text: &str) {
        self.push(text, true);
    }

    /// Appends untrusted text.
    pub(crate) fn untrusted(&mut self, text: &str) {
        self.push(text, false);
    }

    /// Whether the prompt ends with a closed turn.
    pub(crate) fn ends_with_closed_turn(&self) -> bool {
        let closed = |text: &str| text.strip_suffix('\n').is_some_and(|t| t.ends_with(TURN_CLOSE));
        self.spans.last().is_some_and(|span| span.trusted && closed(&span.text))
    }

    fn push(&mut self, text: &str, trusted: bool) {
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.trusted == trusted => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), trusted }),
        }
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spans.iter().try_for_each(|span| f.write_str(&span.text))
    }
}
