//! DiffusionGemma: models that generate blocks of text by denoising.

use std::ops::ControlFlow;

use pollster::block_on;
use rullama_chat::{Conversation, Message};
use rullama_runtime::{
    Denoiser,
    denoise::{DEFAULT_BLOCKS, Denoised, WriteOptions, Writing, Written},
    generate::{ChatOptions, Done, Event},
    options::resolve_seed,
};

use crate::{
    error::Error,
    options::{OnProgress, OpenOptions},
    session::entropy,
};

/// A diffusion model whose weights are on a device.
#[derive(Debug, Clone)]
pub struct DiffusionModel {
    denoiser: Denoiser,
    options: OpenOptions,
}

/// Options of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffusionOptions {
    /// Whether the prompt is continued without the chat template.
    pub raw: bool,
    /// Seed of the random numbers; negative = a new one each time.
    pub seed: i64,
    /// Maximum denoising steps per block; `None` = the file's value.
    pub steps: Option<usize>,
    /// Maximum number of blocks.
    pub blocks: usize,
    /// Maximum number of tokens.
    pub tokens: Option<usize>,
}

impl Default for DiffusionOptions {
    fn default() -> Self {
        Self { raw: false, seed: -1, steps: None, blocks: DEFAULT_BLOCKS, tokens: None }
    }
}

/// A reply of a diffusion model.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffusionReply {
    /// Its text.
    pub text: String,
    /// Why it ended, and token counts.
    pub done: Option<Done>,
    /// Number of blocks and steps.
    pub written: Written,
}

impl DiffusionModel {
    /// Opens a diffusion model: a name of Ollama's store, the path of a GGUF file, or a URL.
    ///
    /// # Errors
    /// If the model is not found, is not a diffusion model, or does not fit on the device.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::open_with(name, &OpenOptions::default(), &mut |_| ControlFlow::Continue(()))
    }

    /// Opens a diffusion model with these options; `progress` gets loading progress and may cancel.
    ///
    /// # Errors
    /// As [`Self::open`], or if loading was cancelled.
    pub fn open_with(
        name: &str,
        options: &OpenOptions,
        progress: OnProgress<'_>,
    ) -> Result<Self, Error> {
        let gguf = options.stores.find(name)?.open()?;
        let device = options.open_device()?.device;
        let denoiser = block_on(Denoiser::load(gguf, device, progress))?;
        Ok(Self { denoiser, options: options.clone() })
    }

    /// Replies to a prompt. `each` is called after every denoising step and may end the reply.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use rullama::{DiffusionModel, DiffusionOptions};
    ///
    /// let model = DiffusionModel::open("../../goldens/diffusion/micro-diffusion-BF16.gguf")?;
    /// let options = DiffusionOptions { raw: true, seed: 1, blocks: 1, steps: Some(2), ..Default::default() };
    /// let mut steps = 0;
    /// model.reply("Hello", &options, &mut |_| {
    ///     steps += 1;
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(steps <= 2);
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the prompt does not fit into the context, or the device fails.
    pub fn reply(
        &self,
        prompt: &str,
        options: &DiffusionOptions,
        each: &mut dyn FnMut(&Denoised) -> ControlFlow<()>,
    ) -> Result<DiffusionReply, Error> {
        block_on(self.reply_async(prompt, options, each))
    }

    /// Async variant of [`Self::reply`].
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub async fn reply_async(
        &self,
        prompt: &str,
        options: &DiffusionOptions,
        each: &mut dyn FnMut(&Denoised) -> ControlFlow<()>,
    ) -> Result<DiffusionReply, Error> {
        let model = &self.denoiser;
        let prompt = if options.raw {
            model.plain_prompt(prompt)?
        } else {
            let messages = vec![Message::new("user", prompt)];
            let conversation = Conversation { messages, ..Conversation::default() };
            model.prompt(&conversation, ChatOptions::default())?
        };
        let mut denoise = model.options(resolve_seed(options.seed, entropy()).into());
        denoise.schedule.steps = options.steps.unwrap_or(denoise.schedule.steps).max(1);
        let (blocks, tokens) = (options.blocks, options.tokens);
        let write = WriteOptions { denoise, blocks, tokens, stops: Vec::new() };
        let mut session = model.session(self.options.context, self.options.cache)?;
        let mut writing = Writing::begin(&mut session, model, &prompt, write).await?;
        let (mut text, mut done) = (String::new(), None);
        loop {
            let more = writing.block(each).await?;
            while let Some(event) = writing.ready() {
                match event {
                    Event::Text(piece) => text.push_str(&piece),
                    Event::Done(found) => done = Some(found),
                    _ => {}
                }
            }
            if !more {
                return Ok(DiffusionReply { text, done, written: writing.written() });
            }
        }
    }

    /// The underlying model of the crate `rullama-runtime`.
    pub fn runtime(&self) -> &Denoiser {
        &self.denoiser
    }
}
