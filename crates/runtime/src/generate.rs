//! From a prompt to events: text, thinking, tool calls, and how it ended.

mod constraint;
mod device_sampling;
#[cfg(feature = "json")]
mod json;
mod reply_text;
mod request;

use rullama_chat::Start;
use rullama_tokenizer::{Render, Special, Tokenizer};
use serde_json::{Map, Value};

pub use constraint::{Constraint, ConstraintError};
#[cfg(feature = "json")]
pub use json::JsonFormat;
pub(crate) use reply_text::ReplyText;
pub(crate) use request::rendered_prompt;
pub use request::{ChatOptions, Prompt, prompt_of, prompt_with};

use crate::{
    error::RuntimeError,
    generate::constraint::{ConstraintState, Role},
    model::Model,
    options::SamplingOptions,
    sampling::{
        Sampler, SequenceBreakers,
        logprobs::{Logprobs, logprobs},
    },
    session::{DeviceSampling, Session},
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

/// What decides about the tokens of a reply.
struct Choice<'a> {
    options: &'a SamplingOptions,
    seed: u32,
    constraint: Option<Box<dyn Constraint>>,
}

/// How tokens are chosen.
enum Chooser {
    /// On the device.
    Device(DeviceSampling),
    /// On the host, from all logits: filters that need them, or the token's history.
    Host(Box<Sampler>),
}

/// A reply being generated: read its events until it is done, or drop it.
pub struct Generation<'s, 'm> {
    session: &'s mut Session,
    tokenizer: &'m Tokenizer,
    chooser: Chooser,
    /// What the reply is constrained to, and how far it is.
    constraint: Option<ConstraintState>,
    options: SamplingOptions,
    reply: ReplyText<'m>,
    prompt_tokens: usize,
    cached_tokens: usize,
    answer_tokens: usize,
    ended: bool,
}

impl<'s, 'm> Generation<'s, 'm> {
    /// Prepares an answer to a prompt; what the session has computed of a common beginning is kept.
    ///
    /// # Errors
    /// If the prompt does not fit into the context, or the options make no sense.
    pub fn new(
        session: &'s mut Session,
        model: &'m Model,
        prompt: &Prompt,
        options: &SamplingOptions,
        seed: u32,
    ) -> Result<Self, RuntimeError> {
        Self::prepared(session, model, prompt, Choice { options, seed, constraint: None })
    }

    /// Prepares a constrained reply; thinking before it is not constrained.
    ///
    /// # Errors
    /// If the prompt does not fit into the context, or the options make no sense.
    pub fn constrained(
        session: &'s mut Session,
        model: &'m Model,
        prompt: &Prompt,
        options: &SamplingOptions,
        seed: u32,
        constraint: Box<dyn Constraint>,
    ) -> Result<Self, RuntimeError> {
        let constraint = Some(constraint);
        Self::prepared(session, model, prompt, Choice { options, seed, constraint })
    }

    fn prepared(
        session: &'s mut Session,
        model: &'m Model,
        prompt: &Prompt,
        Choice { options, seed, constraint }: Choice<'_>,
    ) -> Result<Self, RuntimeError> {
        if prompt.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        let tokenizer = model.tokenizer()?;
        let chooser = match device_sampling::on_device(options, seed) {
            Some(sampling) if constraint.is_none() => {
                options.validate()?;
                Chooser::Device(sampling)
            }
            _ => {
                let mut sampler = Sampler::new(options, seed)?;
                if options.dry_multiplier != 0.0 {
                    sampler = sampler.with_breakers(breakers(tokenizer, options));
                }
                // Placeholders are no text that could be repeated.
                let soft = |id: &u32| prompt.media.iter().any(|media| media.placeholder == *id);
                let text = prompt.tokens.iter().copied().filter(|id| !soft(id));
                sampler.accept_prompt(&text.collect::<Vec<_>>());
                Chooser::Host(Box::new(sampler))
            }
        };
        let parser = prompt.parser.clone();
        let in_thought = parser.as_ref().is_some_and(|parser| parser.start == Start::Thinking);
        let reply = ReplyText::new(tokenizer, parser, &options.stop);
        let constraint = constraint.map(|constraint| {
            ConstraintState::new(constraint, tokenizer, prompt.thinks, in_thought)
        });
        let tokens = session.soften(&prompt.tokens, &prompt.media)?;
        let cached_tokens = session.set_tokens(&tokens)?;
        Ok(Self {
            session,
            chooser,
            // A constrained reply is text as it comes: markers in it mean nothing.
            reply: if constraint.as_ref().is_some_and(ConstraintState::in_answer) {
                reply.plain()
            } else {
                reply
            },
            constraint,
            options: options.clone(),
            tokenizer,
            prompt_tokens: prompt.tokens.len(),
            cached_tokens,
            answer_tokens: 0,
            ended: false,
        })
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
            self.finish(Finish::Cancelled);
        }
        Ok(())
    }

    /// The next event; `None` after [`Event::Done`].
    ///
    /// # Errors
    /// If the device fails. The session keeps the tokens that came before.
    pub async fn next(&mut self) -> Result<Option<Event>, RuntimeError> {
        loop {
            if let Some(event) = self.reply.next() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            self.token().await?;
        }
    }

    /// Makes one token, whose events [`Self::ready`] has; false after the end. For those who time tokens, or want to stop
    /// between tokens that say nothing.
    ///
    /// # Errors
    /// If the device fails. The session keeps the tokens that came before.
    pub async fn step(&mut self) -> Result<bool, RuntimeError> {
        if self.ended {
            return Ok(false);
        }
        self.token().await?;
        Ok(true)
    }

    /// An event that needs no more tokens.
    pub fn ready(&mut self) -> Option<Event> {
        self.reply.next()
    }

    /// Ends the answer here; text that was held back and the end are still reported.
    pub fn cancel(&mut self) {
        if !self.ended {
            self.finish(Finish::Cancelled);
        }
    }

    /// Makes one token and what it brings.
    async fn token(&mut self) -> Result<(), RuntimeError> {
        let limit = usize::try_from(self.options.num_predict).ok();
        if limit.is_some_and(|limit| self.answer_tokens >= limit) {
            self.finish(Finish::Length);
            return Ok(());
        }
        let Some(id) = self.choose().await? else {
            self.finish(Finish::Context);
            return Ok(());
        };
        self.answer_tokens += 1;
        if self.tokenizer.is_end(id) {
            self.finish(Finish::Stop);
            return Ok(());
        }
        let complete = self.follow(id)?;
        if self.reply.push(id) || complete {
            self.finish(Finish::Stop);
        }
        Ok(())
    }

    /// Tells the constraint which token came; true if nothing can follow it.
    fn follow(&mut self, id: u32) -> Result<bool, RuntimeError> {
        let Some(constraint) = &mut self.constraint else { return Ok(false) };
        let role = constraint.accept(id)?;
        if role != Role::Thought {
            self.reply.end_parser();
        }
        Ok(role == Role::End)
    }

    async fn choose(&mut self) -> Result<Option<u32>, RuntimeError> {
        let sampler = match &mut self.chooser {
            Chooser::Device(sampling) => return self.session.next(*sampling).await,
            Chooser::Host(sampler) => sampler,
        };
        if self.session.tokens().len() >= self.session.context() {
            return Ok(None);
        }
        let logits = self.session.logits().await?;
        let id = match &mut self.constraint {
            None => sampler.sample(&logits)?.id,
            Some(constraint) => {
                constraint.prepare()?;
                let allow = |id| constraint.allows(id, self.tokenizer);
                sampler.sample_with(&logits, Some(&allow))?.id
            }
        };
        if self.options.logprobs {
            let top = usize::from(self.options.top_logprobs);
            self.reply.tell(Event::Logprobs(logprobs(&logits, id, top)));
        }
        sampler.accept(id);
        self.session.extend(&[id])?;
        Ok(Some(id))
    }

    fn finish(&mut self, finish: Finish) {
        self.reply.finish(Done {
            finish,
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            answer_tokens: self.answer_tokens,
        });
        self.ended = true;
    }
}

/// The texts at which DRY stops looking back, as this model's tokens.
fn breakers(tokenizer: &Tokenizer, options: &SamplingOptions) -> SequenceBreakers {
    let pieces: Vec<_> =
        (0..tokenizer.token_count()).map(|id| (id, tokenizer.piece(id, Render::Plain))).collect();
    let vocabulary = pieces.iter().map(|(id, piece)| (*id, piece.as_ref()));
    let encode = |text: &str| tokenizer.encode(text, Special::None);
    SequenceBreakers::new(&options.dry_sequence_breakers, vocabulary, encode)
}
