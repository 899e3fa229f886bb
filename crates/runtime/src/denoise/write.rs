//! Replies of block diffusion models, block by block.

use std::ops::ControlFlow;

use rullama_chat::Conversation;

use super::{DenoiseOptions, Denoised, Denoiser, Denoising};
use crate::{
    error::RuntimeError,
    generate::{ChatOptions, Done, Event, Finish, Prompt, ReplyText, rendered_prompt},
};

/// Default maximum of blocks per reply.
pub const DEFAULT_BLOCKS: usize = 4;

/// Options of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOptions {
    /// How each block is denoised.
    pub denoise: DenoiseOptions,
    /// Maximum blocks.
    pub blocks: usize,
    /// Maximum tokens; later tokens of the last block are dropped.
    pub tokens: Option<usize>,
    /// Stop strings.
    pub stops: Vec<String>,
}

/// Counts of a reply so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Denoised blocks.
    pub blocks: usize,
    /// Denoising steps of all blocks.
    pub steps: usize,
    /// Reply tokens.
    pub tokens: usize,
}

impl Denoiser {
    /// Renders a text conversation with the model's template.
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
    /// The last block, which is prefilled before the next one starts.
    unread: Vec<u32>,
    ended: bool,
}

impl<'s, 'm> Writing<'s, 'm> {
    /// Prefills a prompt, replacing the session's tokens.
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

    /// Counts so far.
    pub fn written(&self) -> Written {
        self.written
    }

    /// The next event that is available without another block; the last one is [`Event::Done`].
    pub fn ready(&mut self) -> Option<Event> {
        self.reply.next()
    }

    /// Denoises one more block, whose events [`Self::ready`] returns; false after the end. `each` is called after every step and may
    /// cancel; an unfinished block is dropped.
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
            let left = self.session.context() - self.session.filled();
            if left < 2 * self.unread.len() {
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
        if let Some(finish) = self.append(&block.tokens, most)? {
            return Ok(self.finish(finish));
        }
        self.unread = block.tokens;
        Ok(true)
    }

    /// Appends a block to the reply, up to its end; returns the finish reason if the reply ends.
    fn append(&mut self, tokens: &[u32], most: usize) -> Result<Option<Finish>, RuntimeError> {
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

    /// Ends the reply.
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
