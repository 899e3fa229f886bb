//! A conversation with a model. Messages are kept on the host, so that they survive a lost device.

use std::time::{Duration, Instant};

use pollster::block_on;
use rullama_adapter::Adapter;
use rullama_chat::{Conversation, Message, Tool};
use rullama_runtime::{
    EncodedMedia, MediaEncoders, RuntimeError,
    generate::{ChatOptions, Generation, JsonFormat, Prompt, prompt_with},
    options::{SamplingOptions, resolve_seed},
    session::{DraftCounts, DraftOptions, DraftSource, MAX_TOKENS},
};
use serde_json::Value;

use crate::{
    adapter::AdapterSet,
    draft::{Draft, Drafting},
    error::Error,
    message::{Attachment, UserMessage},
    model::Model,
    reply::{Length, Reply, ReplyStream, Turn},
    saved::SavedSession,
};

/// Options of a session.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Context in tokens; `None` = the model's.
    pub context: Option<usize>,
    /// Where drafts for speculative decoding come from.
    pub draft: Draft,
    /// Maximum number of drafts at a time.
    pub draft_tokens: Option<usize>,
}

/// Output format of replies.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// Any JSON object.
    Json,
    /// JSON that matches this schema.
    Schema(Value),
}

/// A conversation: messages, settings and the KV cache.
///
/// ```
/// let model = rullama::Model::open("demo")?;
/// let mut session = model.session()?;
/// session.system = Some("You are a calculator.".into());
/// session.sampling.temperature = 0.0;
/// let reply = session.send("What is 23 + 45?")?;
/// println!("{} ({} tokens)", reply.text, reply.done.answer_tokens);
/// # Ok::<(), rullama::Error>(())
/// ```
pub struct Session {
    model: Model,
    kv: rullama_runtime::Session,
    encoders: MediaEncoders,
    /// The encoded media of the messages, in order.
    encoded: Vec<EncodedMedia>,
    /// Maximum soft tokens of an image that the KV cache is allocated for.
    block: usize,
    adapters: AdapterSet,
    draft: Option<DraftOptions>,
    unused_drafter: Option<Error>,
    format: Option<JsonFormat>,
    messages: Vec<Message>,
    /// Sampling options; initially the model's.
    pub sampling: SamplingOptions,
    /// The system message.
    pub system: Option<String>,
    /// Whether the model thinks before it replies.
    pub thinking: bool,
    /// Whether thinking is excluded from events and replies.
    pub hide_thinking: bool,
    /// Tools the model may call.
    pub tools: Vec<Tool>,
}

impl Session {
    pub(crate) fn new(model: Model, options: &SessionOptions) -> Result<Self, Error> {
        let (sampling, _) = model.sampling()?;
        let adapters = model.adapters().clone();
        let context = options.context.or(model.context());
        let mut kv = kv_cache(&model, &adapters, context, 0)?;
        let opened = model.options();
        let Drafting { options: draft, unused } = options.draft.load(
            &opened.stores,
            model.location(),
            model.runtime(),
            options.draft_tokens,
        )?;
        kv.draft(draft.clone())?;
        Ok(Self {
            encoders: MediaEncoders::new(model.runtime(), model.projectors()?),
            encoded: Vec::new(),
            block: 0,
            adapters,
            draft,
            unused_drafter: unused,
            format: None,
            messages: Vec::new(),
            sampling,
            system: model.system().map(Into::into),
            thinking: false,
            hide_thinking: false,
            tools: Vec::new(),
            kv,
            model,
        })
    }

    /// Sends a message and waits for the reply. If the GPU is lost meanwhile, the model is loaded again and the reply restarts.
    /// After an error the conversation is as before.
    ///
    /// ```
    /// let mut session = rullama::Model::open("demo")?.session()?;
    /// let reply = session.send("What is 23 + 45?")?;
    /// assert!(reply.text.contains("68"));
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the message does not fit into the context, its media cannot be used, or the device fails.
    pub fn send(&mut self, message: impl Into<UserMessage>) -> Result<Reply, Error> {
        let message = message.into();
        match self.stream(message.clone()).and_then(ReplyStream::finish) {
            Err(error) if error.is_device_lost() => {
                self.reload()?;
                self.stream(message)?.finish()
            }
            result => result,
        }
    }

    /// Sends a message; the reply is generated while its events are read.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn stream(&mut self, message: impl Into<UserMessage>) -> Result<ReplyStream<'_>, Error> {
        let message = message.into();
        let before = self.length();
        self.messages.push(message.message());
        let start = Instant::now();
        let encoded = block_on(self.encode(&message.media));
        let media = if message.media.is_empty() { Duration::ZERO } else { start.elapsed() };
        if let Err(error) = encoded {
            self.shorten(before);
            return Err(error);
        }
        self.begin(before, media)
    }

    /// Appends a message of any role without generating a reply, such as the result of a tool.
    ///
    /// ```
    /// use rullama::Message;
    ///
    /// let mut session = rullama::Model::open("demo")?.session()?;
    /// session.push(Message::new("user", "What is 23 + 45?"));
    /// let reply = session.stream_reply()?.finish()?;
    /// assert!(reply.text.contains("68"));
    /// # Ok::<(), rullama::Error>(())
    /// ```
    pub fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Replies to the conversation so far.
    ///
    /// # Errors
    /// As [`Self::send`], or if it has no messages.
    pub fn stream_reply(&mut self) -> Result<ReplyStream<'_>, Error> {
        if self.messages.is_empty() {
            return Err(Error::NoMessage);
        }
        let before = self.length();
        self.begin(before, Duration::ZERO)
    }

    /// Continues a text without the chat template. The conversation is unchanged.
    ///
    /// ```
    /// let mut session = rullama::Model::open("demo")?.session()?;
    /// session.sampling.num_predict = 4;
    /// let reply = session.complete("Once upon a time")?.finish()?;
    /// assert!(reply.done.answer_tokens <= 4);
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the text does not fit into the context.
    pub fn complete(&mut self, text: &str) -> Result<ReplyStream<'_>, Error> {
        let prompt = Prompt::text(self.model.runtime(), text)?;
        let generation = generation(&self.model, &mut self.kv, &prompt, &self.sampling, None)?;
        Ok(ReplyStream::new(generation, None, Duration::ZERO))
    }

    fn begin(&mut self, before: Length, media: Duration) -> Result<ReplyStream<'_>, Error> {
        let prompt = self.prompt();
        let Self { model, kv, encoded, format, messages, sampling, .. } = self;
        let turn = Turn { messages, encoded, before };
        let begun =
            prompt.and_then(|prompt| generation(model, kv, &prompt, sampling, format.as_ref()));
        match begun {
            Ok(generation) => Ok(ReplyStream::new(generation, Some(turn), media)),
            Err(error) => {
                turn.undo();
                Err(error)
            }
        }
    }

    /// Encodes the media of the newest message, and enlarges the KV cache for them if needed.
    async fn encode(&mut self, media: &[Attachment]) -> Result<(), Error> {
        for attachment in media {
            let encoded = self.encoders.encode(&attachment.medium).await;
            self.encoded.push(encoded.map_err(|source| match source.code() {
                // Not caused by the medium.
                "device_lost" => source.into(),
                _ => Error::Media { name: attachment.name(), source: source.into() },
            })?);
        }
        let longest = self.encoded.iter().map(EncodedMedia::longest).max().unwrap_or(0);
        if longest > self.block.max(MAX_TOKENS) {
            self.block = longest;
            self.set_context(self.kv.context())?;
        }
        Ok(())
    }

    /// The prompt of the conversation.
    fn prompt(&self) -> Result<Prompt, Error> {
        let conversation = Conversation {
            messages: self.all_messages(),
            tools: self.tools.clone(),
            thinking: self.thinking,
            ..Conversation::default()
        };
        let options = ChatOptions { hide_thinking: self.hide_thinking };
        Ok(prompt_with(self.model.runtime(), &conversation, &self.encoded, options)?)
    }

    /// The messages in the prompt: the system message, those stored with the model, and those of the conversation.
    pub fn all_messages(&self) -> Vec<Message> {
        let system = self.system.iter().map(|text| Message::new("system", text.clone()));
        let opening = self.model.opening().iter().cloned();
        system.chain(opening).chain(self.messages.iter().cloned()).collect()
    }

    /// The messages of the conversation.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The underlying session of the crate `rullama-runtime`: tokens and KV cache.
    pub fn kv(&self) -> &rullama_runtime::Session {
        &self.kv
    }

    /// Maximum number of tokens of the conversation.
    pub fn context(&self) -> usize {
        self.kv.context()
    }

    /// Changes the context; the conversation is processed again with the next message.
    ///
    /// # Errors
    /// If the context is invalid, or the device fails.
    pub fn set_context(&mut self, context: usize) -> Result<(), Error> {
        let mut kv = kv_cache(&self.model, &self.adapters, Some(context), self.block)?;
        kv.draft(self.draft.clone())?;
        self.kv = kv;
        Ok(())
    }

    /// Constrains replies to a format; `None` removes the constraint. Thinking is not constrained.
    ///
    /// ```
    /// use rullama::Format;
    ///
    /// let mut session = rullama::Model::open("demo")?.session()?;
    /// session.sampling.num_predict = 40;
    /// let schema = serde_json::json!({ "enum": ["yes", "no"] });
    /// session.set_format(Some(Format::Schema(schema)))?;
    /// let reply = session.send("Is 68 more than 23?")?;
    /// assert!(["\"yes\"", "\"no\""].contains(&reply.text.trim()));
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the schema cannot be used.
    pub fn set_format(&mut self, format: Option<Format>) -> Result<(), Error> {
        let tokenizer = self.model.runtime().tokenizer()?;
        let constraint = format.map(|format| match format {
            Format::Json => JsonFormat::object(tokenizer),
            Format::Schema(schema) => JsonFormat::schema(tokenizer, schema),
        });
        self.format = constraint.transpose().map_err(RuntimeError::from)?;
        Ok(())
    }

    /// Uses these adapters, each with its strength, instead of the current ones.
    ///
    /// # Errors
    /// If one does not fit the model, or the device fails.
    pub fn set_adapters(&mut self, adapters: Vec<(Adapter, f32)>) -> Result<(), Error> {
        let set = AdapterSet(adapters);
        set.attach(&mut self.kv, exact(&self.model))?;
        self.adapters = set;
        Ok(())
    }

    /// Why the drafter stored with the model is not used; `None` if it is.
    pub fn unused_drafter(&self) -> Option<&Error> {
        self.unused_drafter.as_ref()
    }

    /// Draft counts so far; `None` without speculative decoding.
    pub fn draft_counts(&self) -> Option<DraftCounts> {
        self.kv.draft_counts()
    }

    /// Bytes of weights, encoders, caches and activations on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.model.runtime().gpu_bytes() + self.encoders.gpu_bytes() + self.kv.gpu_bytes()
    }

    /// Clears the conversation, and unloads the encoders until they are needed again.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.encoded.clear();
        self.encoders.unload();
    }

    /// Loads the model again on a new device; the conversation is processed again with the next message.
    ///
    /// # Errors
    /// If it cannot be loaded.
    pub fn reload(&mut self) -> Result<(), Error> {
        let model = self.model.reopen()?;
        self.move_to(model)
    }

    /// Continues with another copy of the model on another device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn move_to(&mut self, model: Model) -> Result<(), Error> {
        let context = self.kv.context();
        // A drafter was lost with its device; replies are the same without it.
        self.draft = self.draft.take().filter(|draft| matches!(draft.source, DraftSource::Text));
        self.encoders = MediaEncoders::new(model.runtime(), model.projectors()?);
        self.model = model;
        self.set_context(context)
    }

    /// The conversation and its KV cache, to be written to a file.
    ///
    /// ```
    /// let model = rullama::Model::open("demo")?;
    /// let mut session = model.session()?;
    /// session.send("Hello")?;
    /// let mut file = Vec::new();
    /// session.save()?.write(&mut file)?;
    ///
    /// let mut later = model.session()?;
    /// later.load(rullama::SavedSession::read(&file[..])?)?;
    /// assert_eq!(later.messages(), session.messages());
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub fn save(&mut self) -> Result<SavedSession, Error> {
        Ok(SavedSession {
            model: self.model.name().into(),
            system: self.system.clone(),
            thinking: self.thinking,
            messages: self.messages.clone(),
            encoded: self.encoded.clone(),
            session: block_on(self.kv.save())?,
        })
    }

    /// Restores a saved conversation; on an error nothing changes.
    ///
    /// # Errors
    /// If it belongs to another model or other adapters, or is damaged.
    pub fn load(&mut self, saved: SavedSession) -> Result<(), Error> {
        let model = self.model.runtime();
        let width = model.config().width;
        for rows in saved.encoded.iter().flat_map(|encoded| &encoded.pieces).map(|p| &p.rows) {
            if rows.count.checked_mul(width) != Some(rows.values.len()) {
                let tower = rows.values.len() / rows.count.max(1);
                return Err(RuntimeError::OtherTower { tower, model: width }.into());
            }
        }
        let restored = block_on(model.restore_with(self.kv.adapters(), &saved.session));
        self.kv = restored.map_err(|error| Error::SavedWith {
            model: saved.model.clone(),
            source: error.into(),
        })?;
        self.kv.draft(self.draft.clone())?;
        (self.system, self.thinking) = (saved.system, saved.thinking);
        (self.messages, self.encoded) = (saved.messages, saved.encoded);
        // The restored session has the context it was saved with.
        self.block = 0;
        Ok(())
    }

    fn length(&self) -> Length {
        Length { messages: self.messages.len(), encoded: self.encoded.len() }
    }

    fn shorten(&mut self, before: Length) {
        self.messages.truncate(before.messages);
        self.encoded.truncate(before.encoded);
    }
}

/// A session of the runtime without tokens.
fn kv_cache(
    model: &Model,
    adapters: &AdapterSet,
    context: Option<usize>,
    block: usize,
) -> Result<rullama_runtime::Session, Error> {
    let cache = model.options().cache;
    let options =
        rullama_runtime::session::SessionOptions { context, cache, block, ..Default::default() };
    adapters.session(model.runtime(), &options, exact(model))
}

/// Whether adapters are kept in f32, as the caches are.
fn exact(model: &Model) -> bool {
    model.options().exact || model.options().cache == rullama_runtime::model::CacheType::F32
}

fn generation<'s>(
    model: &'s Model,
    kv: &'s mut rullama_runtime::Session,
    prompt: &Prompt,
    sampling: &SamplingOptions,
    format: Option<&JsonFormat>,
) -> Result<Generation<'s>, Error> {
    let seed = resolve_seed(sampling.seed, entropy());
    let model = model.runtime();
    Ok(match format {
        None => Generation::new(kv, model, prompt, sampling, seed)?,
        Some(format) => {
            Generation::constrained(kv, model, prompt, sampling, seed, format.constraint())?
        }
    })
}

/// A random seed.
pub(crate) fn entropy() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) & u64::from(u32::MAX)) as u32
}
