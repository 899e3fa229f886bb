//! From a prompt to events: text, thinking, tool calls, and how it ended.

mod completion;
mod constraint;
mod device_sampling;
#[cfg(feature = "json")]
mod json;
mod reply_text;
mod request;

use serde_json::{Map, Value};

pub use completion::{Completion, NextToken};
pub use constraint::{Constraint, ConstraintError};
#[cfg(feature = "json")]
pub use json::JsonFormat;
pub(crate) use reply_text::ReplyText;
pub(crate) use request::rendered_prompt;
pub use request::{ChatOptions, Prompt, prompt_of, prompt_with};

use crate::{
    error::RuntimeError, model::Model, options::SamplingOptions, sampling::logprobs::Logprobs,
    session::Session,
};

/// Something that happened while an answer was made.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A piece of the answer.
    Text(String),
    /// A piece of a thought.
    Thinking(String),
    /// A complete tool call.
    ToolCall {
        /// Position among the calls of this answer, from 0.
        index: usize,
        /// The called tool.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// A tool call that cannot be read, as the model wrote it.
    BadCall {
        /// The text.
        raw: String,
    },
    /// The log-probabilities of a token, where they were requested; they come before its text.
    Logprobs(Logprobs),
    /// The answer has ended; nothing follows.
    Done(Done),
}

/// How an answer ended, and what it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Why it ended.
    pub finish: Finish,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, tokens that were in the caches already.
    pub cached_tokens: usize,
    /// Tokens of the answer, the one that ended it included.
    pub answer_tokens: usize,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model ended it, or a stop text came.
    Stop,
    /// As many tokens as requested.
    Length,
    /// The context is full.
    Context,
    /// It was cancelled.
    Cancelled,
}

impl Finish {
    /// The word that HTTP interfaces use.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length | Self::Context => "length",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A reply being generated: read its events until it is done, or drop it.
pub struct Generation<'s> {
    session: &'s mut Session,
    completion: Completion,
}

impl<'s> Generation<'s> {
    /// Prepares an answer to a prompt; what the session has computed of a common beginning is kept.
    ///
    /// # Errors
    /// If the prompt does not fit into the context, or the options make no sense.
    pub fn new(
        session: &'s mut Session,
        model: &Model,
        prompt: &Prompt,
        options: &SamplingOptions,
        seed: u32,
    ) -> Result<Self, RuntimeError> {
        Self::of(session, prompt, Completion::new(model, prompt, options, seed)?)
    }

    /// Prepares a constrained reply; thinking before it is not constrained.
    ///
    /// # Errors
    /// If the prompt does not fit into the context, or the options make no sense.
    pub fn constrained(
        session: &'s mut Session,
        model: &Model,
        prompt: &Prompt,
        options: &SamplingOptions,
        seed: u32,
        constraint: Box<dyn Constraint>,
    ) -> Result<Self, RuntimeError> {
        let completion = Completion::constrained(model, prompt, options, seed, constraint)?;
        Self::of(session, prompt, completion)
    }

    fn of(
        session: &'s mut Session,
        prompt: &Prompt,
        mut completion: Completion,
    ) -> Result<Self, RuntimeError> {
        let tokens = session.soften(&prompt.tokens, &prompt.media)?;
        completion.set_cached(session.set_tokens(&tokens)?);
        Ok(Self { session, completion })
    }

    /// Reads the prompt, as far as that is not done. `each` is told how many tokens are done and may stop the work by
    /// returning false. [`Self::next`] does it too; this is for those who show or time it.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn prefill(
        &mut self,
        each: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), RuntimeError> {
        if !self.session.prefill(each).await? {
            self.completion.cancel();
        }
        Ok(())
    }

    /// The next event; `None` after [`Event::Done`].
    ///
    /// # Errors
    /// If the device fails. The session keeps the tokens that came before.
    pub async fn next(&mut self) -> Result<Option<Event>, RuntimeError> {
        loop {
            if let Some(event) = self.completion.event() {
                return Ok(Some(event));
            }
            if !self.step().await? {
                return Ok(None);
            }
        }
    }

    /// Makes one token, whose events [`Self::ready`] has; false after the end. For those who time tokens, or want to stop
    /// between tokens that say nothing.
    ///
    /// # Errors
    /// If the device fails. The session keeps the tokens that came before.
    pub async fn step(&mut self) -> Result<bool, RuntimeError> {
        match self.completion.next_token() {
            None => return Ok(false),
            Some(NextToken::FromDevice(sampling)) => match self.session.next(sampling).await? {
                Some(id) => self.completion.accept(id)?,
                None => self.completion.context_full(),
            },
            Some(NextToken::FromLogits) => {
                if self.session.tokens().len() >= self.session.context() {
                    self.completion.context_full();
                    return Ok(true);
                }
                let logits = self.session.logits().await?;
                let id = self.completion.choose(&logits)?;
                self.session.extend(&[id])?;
                self.completion.accept(id)?;
            }
            Some(NextToken::Ended) => {}
        }
        Ok(true)
    }

    /// An event that needs no more tokens.
    pub fn ready(&mut self) -> Option<Event> {
        self.completion.event()
    }

    /// Ends the answer here; text that was held back and the end are still reported.
    pub fn cancel(&mut self) {
        self.completion.cancel();
    }
}
