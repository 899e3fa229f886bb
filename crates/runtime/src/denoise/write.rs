//! Answers of models that denoise: block after block, until one ends the answer.

use std::ops::ControlFlow;

use rullama_chat::Conversation;

use super::{DenoiseOptions, Denoised, Denoiser, Denoising};
use crate::{
    error::RuntimeError,
    generate::{ChatOptions, Done, Event, Finish, Prompt, ReplyText, rendered_prompt},
};

/// Blocks of an answer, at most, by default.
pub const USUAL_BLOCKS: usize = 4;

/// How an answer is written.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOptions {
    /// How each block is denoised.
    pub denoise: DenoiseOptions,
    /// Blocks, at most.
    pub blocks: usize,
    /// Tokens, at most; those of the last block after them are not told.
    pub tokens: Option<usize>,
    /// Texts that end the answer.
    pub stops: Vec<String>,
}

/// What an answer took so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Blocks that were denoised.
    pub blocks: usize,
    /// Steps of all of them.
    pub steps: usize,
    /// Tokens that count.
    pub tokens: usize,
}

impl Denoiser {
    /// A conversation of text as the model wants it.
    ///
    /// # Errors
    /// If the conversation cannot be rendered or has images or audio, or the model's vocabulary or template cannot be used.
    pub fn prompt(
        &self,
        conversation: &Conversation,
        options: ChatOptions,
    ) -> Result<Prompt, RuntimeError> {
        rendered_prompt((self.tokenizer()?, &self.template()?), conversation, &[], options)
    }

    /// Plain text after a beginning-of-sequence token.
    ///
    /// # Errors
    /// If the model's vocabulary cannot be used.
    pub fn plain_prompt(&self, text: &str) -> Result<Prompt, RuntimeError> {
        Ok(Prompt::plain(self.tokenizer()?, text))
    }
}

/// A reply being generated, block by block.
pub struct Writing<'s, 'm> {
    session: &'s mut Denoising,
    model: &'m Denoiser,
    options: WriteOptions,
    reply: ReplyText,
    prompt_tokens: usize,
    written: Written,
    /// The last block, which is read before the next one begins.
    unread: Vec<u32>,
    ended: bool,
}

impl<'s, 'm> Writing<'s, 'm> {
    /// Reads a prompt, in place of what the session has read before.
    ///
    /// # Errors
    /// If the prompt is empty, leaves no space for a canvas or has unknown tokens, or the device fails.
    pub async fn begin(
        session: &'s mut Denoising,
        model: &'m Denoiser,
        prompt: &Prompt,
        options: WriteOptions,
    ) -> Result<Self, RuntimeError> {
        if prompt.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        let reply =
            ReplyText::new(model.shared_tokenizer()?, prompt.parser.clone(), &options.stops);
        session.restart();
        session.read(&prompt.tokens).await?;
        Ok(Self {
            session,
            model,
            options,
            reply,
            prompt_tokens: prompt.tokens.len(),
            written: Written::default(),
            unread: Vec::new(),
            ended: false,
        })
    }

    /// What it took so far.
    pub fn written(&self) -> Written {
        self.written
    }

    /// An event that needs no more blocks; the last one is [`Event::Done`].
    pub fn ready(&mut self) -> Option<Event> {
        self.reply.next()
    }

    /// Denoises one more block, whose events [`Self::ready`] has; false after the end. `each` is told of every step and may end the
    /// reply: a block that is not finished says nothing.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn block(
        &mut self,
        each: &mut dyn FnMut(&Denoised) -> ControlFlow<()>,
    ) -> Result<bool, RuntimeError> {
        if self.ended {
            return Ok(false);
        }
        let most = self.options.tokens.unwrap_or(usize::MAX);
        if self.written.blocks >= self.options.blocks || self.written.tokens >= most {
            return Ok(self.finish(Finish::Length));
        }
        if !self.unread.is_empty() {
            let room = self.session.context() - self.session.filled();
            if room < 2 * self.unread.len() {
                return Ok(self.finish(Finish::Context));
            }
            let tokens = std::mem::take(&mut self.unread);
            self.session.read(&tokens).await?;
        }
        let Some(block) = self.session.denoise(&self.options.denoise, each).await? else {
            return Ok(self.finish(Finish::Cancelled));
        };
        self.written.blocks += 1;
        self.written.steps += block.steps;
        if let Some(finish) = self.say(&block.tokens, most)? {
            return Ok(self.finish(finish));
        }
        self.unread = block.tokens;
        Ok(true)
    }

    /// Says a block up to where the answer ends, and why it does.
    fn say(&mut self, tokens: &[u32], most: usize) -> Result<Option<Finish>, RuntimeError> {
        let tokenizer = self.model.tokenizer()?;
        for id in tokens {
            if tokenizer.is_end(*id) {
                return Ok(Some(Finish::Stop));
            }
            if self.written.tokens >= most {
                return Ok(Some(Finish::Length));
            }
            self.written.tokens += 1;
            if self.reply.push(*id) {
                return Ok(Some(Finish::Stop));
            }
        }
        Ok(None)
    }

    /// Ends the answer; there are no more blocks.
    fn finish(&mut self, finish: Finish) -> bool {
        self.ended = true;
        self.reply.finish(Done {
            finish,
            prompt_tokens: self.prompt_tokens,
            cached_tokens: 0,
            answer_tokens: self.written.tokens,
        });
        false
    }
}
