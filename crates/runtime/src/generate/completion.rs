//! The state of one completion, independent of the session that computes it: sampling, decoding of text, and the end. A session drives
//! one completion; the scheduler drives many.

use std::rc::Rc;

use rullama_chat::Start;
use rullama_tokenizer::{Render, Special, Tokenizer};

use super::{
    Constraint, Done, Event, Finish, Prompt, ReplyText,
    constraint::{ConstraintState, Role},
    device_sampling,
    thought_limit::ThoughtLimit,
};
use crate::{
    error::RuntimeError,
    model::Model,
    options::SamplingOptions,
    sampling::{Sampler, SequenceBreakers, logprobs::logprobs},
    session::DeviceSampling,
};

/// Where tokens are sampled.
enum SamplingPlace {
    /// On the device.
    Device(DeviceSampling),
    /// On the host, for filters that need all logits or the previous tokens.
    Host(Box<Sampler>),
}

/// Where the next token of a completion comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NextToken {
    /// The device samples it; pass it to [`Completion::accept`].
    FromDevice(DeviceSampling),
    /// [`Completion::choose`] samples it from the logits of the last token.
    FromLogits,
    /// None: the completion has just ended.
    Ended,
}

/// One completion.
pub struct Completion {
    tokenizer: Rc<Tokenizer>,
    sampling: SamplingPlace,
    /// The constraint on the reply and its state.
    constraint: Option<ConstraintState>,
    thought_limit: Option<ThoughtLimit>,
    options: SamplingOptions,
    reply: ReplyText,
    prompt_tokens: usize,
    cached_tokens: usize,
    answer_tokens: usize,
    ended: bool,
    /// Whether the allowed next tokens are known.
    prepared: bool,
}

impl Completion {
    /// A completion of a prompt, before its first token.
    ///
    /// # Errors
    /// If the prompt is empty, the model has no vocabulary or the options are invalid.
    pub fn new(
        model: &Model,
        prompt: &Prompt,
        options: &SamplingOptions,
        seed: u32,
    ) -> Result<Self, RuntimeError> {
        Self::prepared(model, prompt, options, seed, None)
    }

    /// A constrained completion; thinking before the reply is not constrained.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn constrained(
        model: &Model,
        prompt: &Prompt,
        options: &SamplingOptions,
        seed: u32,
        constraint: Box<dyn Constraint>,
    ) -> Result<Self, RuntimeError> {
        Self::prepared(model, prompt, options, seed, Some(constraint))
    }

    fn prepared(
        model: &Model,
        prompt: &Prompt,
        options: &SamplingOptions,
        seed: u32,
        constraint: Option<Box<dyn Constraint>>,
    ) -> Result<Self, RuntimeError> {
        if prompt.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        let tokenizer = model.shared_tokenizer()?;
        let sampling = match device_sampling::on_device(options, seed) {
            Some(sampling) if constraint.is_none() => {
                options.validate()?;
                SamplingPlace::Device(sampling)
            }
            _ => SamplingPlace::Host(Box::new(host_sampler(&tokenizer, prompt, options, seed)?)),
        };
        let parser = prompt.parser.clone();
        let in_thought = parser.as_ref().is_some_and(|parser| parser.start == Start::Thinking);
        let output = parser.as_ref().map(|parser| parser.output).unwrap_or_default();
        let markers = match output.thought_markers() {
            Some(markers) => markers.map(|text| tokenizer.id_of(text)),
            None => [None; 2],
        };
        let thought_limit = match (prompt.thought_limit, &parser) {
            (Some(limit), Some(_)) => Some(ThoughtLimit::new(limit, markers, in_thought)?),
            _ => None,
        };
        let constraint = constraint.map(|constraint| {
            ConstraintState::new(constraint, &tokenizer, output, (prompt.thinks, in_thought))
        });
        let reply = ReplyText::new(Rc::clone(&tokenizer), parser, &options.stop);
        // Markers in constrained text have no meaning.
        let plain = constraint.as_ref().is_some_and(ConstraintState::is_text);
        Ok(Self {
            tokenizer,
            sampling,
            constraint,
            thought_limit,
            options: options.clone(),
            reply: if plain { reply.plain() } else { reply },
            prompt_tokens: prompt.tokens.len(),
            cached_tokens: 0,
            answer_tokens: 0,
            ended: false,
            prepared: false,
        })
    }

    /// Sets the number of prompt tokens that were in the KV cache already.
    pub fn set_cached(&mut self, tokens: usize) {
        self.cached_tokens = tokens;
    }

    /// Tokens of the prompt.
    pub(crate) fn prompt_tokens(&self) -> usize {
        self.prompt_tokens
    }

    /// Most tokens of the completion; negative for as many as the context holds.
    pub(crate) fn num_predict(&self) -> i32 {
        self.options.num_predict
    }

    /// Where the next token comes from; `None` after the end.
    pub fn next_token(&mut self) -> Option<NextToken> {
        if self.ended {
            return None;
        }
        let limit = usize::try_from(self.options.num_predict).ok();
        if limit.is_some_and(|limit| self.answer_tokens >= limit) {
            self.finish(Finish::Length);
            return Some(NextToken::Ended);
        }
        if self.thought_end().is_some() {
            return Some(NextToken::FromLogits);
        }
        Some(match &self.sampling {
            SamplingPlace::Device(sampling) => NextToken::FromDevice(*sampling),
            SamplingPlace::Host(_) => NextToken::FromLogits,
        })
    }

    /// Tokens left until the token limit, or until a thought must end: no more may be queued ahead.
    pub fn remaining(&self) -> usize {
        let limit = usize::try_from(self.options.num_predict).unwrap_or(usize::MAX);
        let thought = self.thought_limit.as_ref().map_or(usize::MAX, ThoughtLimit::remaining);
        limit.saturating_sub(self.answer_tokens).min(thought)
    }

    /// The token that ends a thought which has reached its limit.
    fn thought_end(&self) -> Option<u32> {
        self.thought_limit.as_ref().and_then(ThoughtLimit::end)
    }

    /// Computes the tokens that the constraint allows next, if there is one. [`Self::choose`] does so too; call this while the device
    /// computes the logits.
    ///
    /// # Errors
    /// If the constraint cannot be followed.
    pub fn prepare(&mut self) -> Result<(), RuntimeError> {
        if let Some(constraint) = self.constraint.as_mut().filter(|_| !self.prepared) {
            constraint.prepare()?;
            self.prepared = true;
        }
        Ok(())
    }

    /// Samples the next token from the logits of the last one; pass it to [`Self::accept`].
    ///
    /// # Errors
    /// If the constraint cannot be followed.
    ///
    /// # Panics
    /// If tokens are sampled on the device, and this one does not end a thought.
    pub fn choose(&mut self, logits: &[f32]) -> Result<u32, RuntimeError> {
        let thought_end = self.thought_end();
        if thought_end.is_none() {
            self.prepare()?;
        }
        let SamplingPlace::Host(sampler) = &mut self.sampling else {
            let Some(end) = thought_end else {
                panic!("tokens of this completion are sampled on the device")
            };
            return Ok(end);
        };
        let id = match (&self.constraint, thought_end) {
            (_, Some(end)) => end,
            (None, None) => sampler.sample(logits)?.id,
            (Some(constraint), None) => {
                let allow = |id| constraint.allows(id, &self.tokenizer);
                sampler.sample_with(logits, Some(&allow))?.id
            }
        };
        if self.options.logprobs {
            let top = usize::from(self.options.top_logprobs);
            self.reply.tell(Event::Logprobs(logprobs(logits, id, top)));
        }
        sampler.accept(id);
        Ok(id)
    }

    /// Appends the next token; its events are available afterwards.
    ///
    /// # Errors
    /// If the constraint cannot be followed.
    pub fn accept(&mut self, id: u32) -> Result<(), RuntimeError> {
        self.answer_tokens += 1;
        if self.tokenizer.is_end(id) {
            // A constrained reply is complete then.
            if !self.options.ignore_eos || self.constraint.is_some() {
                self.finish(Finish::Stop);
            }
            return Ok(());
        }
        if let Some(limit) = &mut self.thought_limit {
            limit.accept(id);
        }
        let complete = self.follow(id)?;
        if self.reply.push(id) || complete {
            self.finish(Finish::Stop);
        }
        Ok(())
    }

    /// The next event that was not returned yet.
    pub fn event(&mut self) -> Option<Event> {
        self.reply.next()
    }

    /// Whether the completion has ended; events may still be available.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Ends the completion because the context is full.
    pub fn context_full(&mut self) {
        self.finish(Finish::Context);
    }

    /// Cancels the completion; text that was held back and the end are still reported.
    pub fn cancel(&mut self) {
        if !self.ended {
            self.finish(Finish::Cancelled);
        }
    }

    /// Advances the constraint by a token; true if the reply is complete.
    fn follow(&mut self, id: u32) -> Result<bool, RuntimeError> {
        let Some(constraint) = &mut self.constraint else { return Ok(false) };
        self.prepared = false;
        let (role, complete) = constraint.accept(id)?;
        if role == Role::Text {
            self.reply.end_parser();
        }
        Ok(complete)
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

/// A sampler with the prompt as history.
fn host_sampler(
    tokenizer: &Tokenizer,
    prompt: &Prompt,
    options: &SamplingOptions,
    seed: u32,
) -> Result<Sampler, RuntimeError> {
    let mut sampler = Sampler::new(options, seed)?;
    if options.dry_multiplier != 0.0 {
        sampler = sampler.with_breakers(breakers(tokenizer, options));
    }
    // Placeholders are not text, so repetition penalties must not count them.
    let soft = |id: &u32| prompt.media.iter().any(|media| media.placeholder == *id);
    let text = prompt.tokens.iter().copied().filter(|id| !soft(id));
    sampler.accept_prompt(&text.collect::<Vec<_>>());
    Ok(sampler)
}

/// DRY sequence breakers as tokens.
fn breakers(tokenizer: &Tokenizer, options: &SamplingOptions) -> SequenceBreakers {
    let pieces: Vec<_> =
        (0..tokenizer.token_count()).map(|id| (id, tokenizer.piece(id, Render::Plain))).collect();
    let vocabulary = pieces.iter().map(|(id, piece)| (*id, piece.as_ref()));
    let encode = |text: &str| tokenizer.encode(text, Special::None);
    SequenceBreakers::new(&options.dry_sequence_breakers, vocabulary, encode)
}
