//! Generation: from a prompt to events (text, thinking, tool calls, end).

mod completion;
mod constraint;
mod device_sampling;
#[cfg(feature = "json")]
mod json;
mod reply_text;
mod request;
mod thought_limit;
mod token_texts;

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use serde_json::{Map, Value};

pub use completion::{Completion, NextToken};
pub use constraint::{CallRule, Constraint, ConstraintError};
#[cfg(feature = "json")]
pub use json::JsonFormat;
pub(crate) use reply_text::ReplyText;
pub(crate) use request::rendered_prompt;
pub use request::{ChatOptions, Prompt, prompt_of, prompt_with};
#[cfg(feature = "json")]
pub use rullama_guidance::{CallFormat, Format, TextFormat};
pub use token_texts::token_texts;

use crate::{
    error::RuntimeError, model::Model, options::SamplingOptions, sampling::logprobs::Logprobs,
    session::Session,
};

/// An event of a generation.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A piece of the reply.
    Text(String),
    /// A piece of the thinking.
    Thinking(String),
    /// A complete tool call.
    ToolCall {
        /// Index among the calls of this reply, from 0.
        index: usize,
        /// The called tool.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// A tool call that cannot be parsed.
    BadCall {
        /// The text the model generated.
        raw: String,
    },
    /// The log-probabilities of a token, if requested; they precede its text.
    Logprobs(Logprobs),
    /// The end of the generation; no event follows.
    Done(Done),
}

/// How a generation ended, with token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Finish reason.
    pub finish: Finish,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that were in the KV cache already.
    pub cached_tokens: usize,
    /// Generated tokens, including the stop token.
    pub answer_tokens: usize,
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// A stop token or a stop text.
    Stop,
    /// The requested number of tokens.
    Length,
    /// The context is full.
    Context,
    /// It was cancelled.
    Cancelled,
}

impl Finish {
    /// The finish reason of HTTP APIs.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length | Self::Context => "length",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A running generation: read its events until it is done, or drop it.
pub struct Generation<'s> {
    session: &'s mut Session,
    completion: Completion,
}

impl<'s> Generation<'s> {
    /// Prepares a generation; KV cache entries of a common prefix with the session are reused.
    ///
    /// # Errors
    /// If the prompt does not fit into the context, or the options are invalid.
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
    /// If the prompt does not fit into the context, or the options are invalid.
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

    /// Continues a completion that [`Self::into_completion`] returned, in the session it was begun in.
    pub fn resume(session: &'s mut Session, completion: Completion) -> Self {
        Self { session, completion }
    }

    /// The state of the completion, without the session: to continue it later, or in a scheduler ([`crate::Scheduler::join`]).
    pub fn into_completion(self) -> Completion {
        self.completion
    }

    /// Runs the remaining prefill until `each`, which receives the number of processed tokens, returns false; returns whether it is done.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn prefill_while(
        &mut self,
        each: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, RuntimeError> {
        self.session.prefill(each).await
    }

    /// Runs the remaining prefill. `each` receives the number of processed tokens and cancels by returning false. [`Self::next`] runs it
    /// too; call this to show or time the prefill.
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

    /// Generates one token, whose events [`Self::ready`] returns; false after the end. Call this to time tokens, or to be able to cancel
    /// between tokens without events.
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
                let logits = self.logits().await?;
                let id = self.completion.choose(&logits)?;
                self.session.extend(&[id])?;
                self.completion.accept(id)?;
            }
            Some(NextToken::Ended) => {}
        }
        Ok(true)
    }

    /// The logits of the last token. The constraint's mask is computed while the device works on them.
    async fn logits(&mut self) -> Result<Vec<f32>, RuntimeError> {
        let mut logits = pin!(self.session.logits());
        // The first poll submits the pass.
        let submitted = poll_fn(|context| Poll::Ready(logits.as_mut().poll(context))).await;
        self.completion.prepare()?;
        match submitted {
            Poll::Ready(logits) => logits,
            Poll::Pending => logits.await,
        }
    }

    /// The next event that is available without generating a token.
    pub fn ready(&mut self) -> Option<Event> {
        self.completion.event()
    }

    /// Cancels the generation; text that was held back and the end are still reported.
    pub fn cancel(&mut self) {
        self.completion.cancel();
    }
}
