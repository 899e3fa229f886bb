//! A complete reply, collected from events.

use serde_json::{Map, Value};

use super::Usage;
use crate::{ApiError, DoneReason, GenerationEvent, GenerationRequest, Stats, TokenLogprob};

/// A reply with all its choices.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Token counts.
    pub usage: Usage,
    /// The choices; at least one.
    pub choices: Vec<Choice>,
}

/// One choice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// Thoughts, text and calls in order; adjacent pieces of a kind are one item.
    pub items: Vec<Item>,
    /// Why it ended; absent while it is running.
    pub reason: Option<DoneReason>,
    /// Its token counts and times.
    pub stats: Stats,
}

/// An item of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A thought.
    Thinking(String),
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Its tokens, if the request wants log-probabilities.
        logprobs: Vec<TokenLogprob>,
    },
    /// A tool call.
    ToolCall {
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
}

impl Reply {
    /// An empty reply with the number of choices of a request.
    pub fn new(request: &GenerationRequest) -> Self {
        let choices = vec![Choice::default(); request.choices() as usize];
        Self { usage: Usage::default(), choices }
    }

    /// Adds an event. Returns the error of [`GenerationEvent::Failed`].
    pub fn push(&mut self, event: GenerationEvent) -> Result<(), ApiError> {
        let index = match &event {
            GenerationEvent::Started { .. } => {
                self.usage.count(&event);
                return Ok(());
            }
            GenerationEvent::Failed(error) => return Err(error.clone()),
            GenerationEvent::Thinking { choice, .. }
            | GenerationEvent::Text { choice, .. }
            | GenerationEvent::ToolCall { choice, .. }
            | GenerationEvent::Done { choice, .. } => *choice as usize,
        };
        if let Some(choice) = self.choices.get_mut(index).filter(|choice| choice.reason.is_none()) {
            self.usage.count(&event);
            choice.push(event);
        }
        Ok(())
    }

    /// Whether all choices have ended.
    pub fn is_complete(&self) -> bool {
        self.choices.iter().all(|choice| choice.reason.is_some())
    }

    /// The first choice; most APIs have only one.
    pub(super) fn first(&self) -> Choice {
        self.choices.first().cloned().unwrap_or_default()
    }
}

impl Choice {
    fn push(&mut self, event: GenerationEvent) {
        match event {
            GenerationEvent::Thinking { text, .. } if !text.is_empty() => {
                if let Some(Item::Thinking(before)) = self.items.last_mut() {
                    before.push_str(&text);
                } else {
                    self.items.push(Item::Thinking(text));
                }
            }
            GenerationEvent::Text { text, mut logprobs, .. }
                if !(text.is_empty() && logprobs.is_empty()) =>
            {
                if let Some(Item::Text { text: before, logprobs: all }) = self.items.last_mut() {
                    before.push_str(&text);
                    all.append(&mut logprobs);
                } else {
                    self.items.push(Item::Text { text, logprobs });
                }
            }
            GenerationEvent::ToolCall { name, arguments, .. } => {
                self.items.push(Item::ToolCall { name, arguments });
            }
            GenerationEvent::Done { reason, stats, .. } => {
                self.reason = Some(reason);
                self.stats = stats;
            }
            _ => {}
        }
    }

    /// All thoughts.
    pub fn thinking(&self) -> String {
        self.items.iter().map(|i| if let Item::Thinking(text) = i { text } else { "" }).collect()
    }

    /// All text.
    pub fn text(&self) -> String {
        self.items.iter().map(|i| if let Item::Text { text, .. } = i { text } else { "" }).collect()
    }

    /// All log-probabilities.
    pub fn logprobs(&self) -> Vec<TokenLogprob> {
        let of = |item: &Item| match item {
            Item::Text { logprobs, .. } => logprobs.clone(),
            _ => Vec::new(),
        };
        self.items.iter().flat_map(of).collect()
    }

    /// All calls.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        self.items.iter().filter_map(|item| match item {
            Item::ToolCall { name, arguments } => Some((name.as_str(), arguments)),
            _ => None,
        })
    }
}
