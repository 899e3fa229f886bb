//! A conversation with a model. Messages live on the host, so that they outlive a lost device.

mod message;
mod settings;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use pollster::block_on;
use rullama_chat::{Conversation, Message};
use rullama_runtime::{
    MediaEncoders, Model, RuntimeError, Session,
    generate::{ChatOptions, Finish, JsonFormat, Prompt, prompt_with},
    media::{EncodedMedia, Medium},
    model::CacheType,
    options::SamplingOptions,
    session::{DraftOptions, DraftSource, MOST_TOKENS, SessionOptions},
};
use rullama_store::ModelFiles;
use serde_json::{Map, Value};

use super::{
    RunArgs,
    answer::{Answer, answer},
    format::Format,
    sampling,
    saved::Saved,
    screen::Screen,
    timing,
};
use crate::{
    adapters::Chosen,
    load::Loader,
    locate::{Place, Stores},
    media::{MediaArgs, MediaFile, Projectors},
    output::{note, note_block},
};

/// A model, a session and what was said.
pub(super) struct Chat {
    name: String,
    loader: Loader,
    /// What its answers are changed by.
    adapters: Chosen,
    model: Model,
    session: Session,
    encoders: MediaEncoders,
    /// Files that may have the towers.
    projectors: Projectors,
    media: MediaArgs,
    /// Files named on the command line, for the first message.
    waiting: Vec<MediaFile>,
    /// What was encoded of the messages' media, in order.
    encoded: Vec<EncodedMedia>,
    /// Most soft tokens of an image that the session has room for.
    block: usize,
    /// Time the towers took, until an answer has reported it.
    perceiving: Duration,
    /// How answers are drafted.
    draft: Option<DraftOptions>,
    /// Time the model took to load, until an answer has reported it.
    load: Duration,
    options: SamplingOptions,
    system: Option<String>,
    thinking: bool,
    hide_thinking: bool,
    /// What answers are held to.
    format: Option<JsonFormat>,
    /// Whether times are shown after each answer.
    pub(super) verbose: bool,
    /// Messages every conversation with this model starts with.
    opening: Vec<Message>,
    messages: Vec<Message>,
}

impl Chat {
    /// Loads the model with what its store says and the flags say over that.
    pub(super) fn start(stores: &Stores, args: &RunArgs) -> Result<Self> {
        let place = stores.find(&args.model)?;
        let layers = Layers::of(&place)?;
        let projectors = args.media.projectors(stores, &place)?;
        let adapters = Chosen::new(&place, &args.adapters)?;
        let context = args.ctx.or(layers.context());
        let loader = Loader::new(place, &args.device, context, CacheType::F16);
        let (model, load) = loader.load()?;
        let options = sampling::layered(model.gguf(), layers.params.as_ref(), &args.sampling)?;
        let format = args.format.as_ref().map(|format| ready(format, &model)).transpose()?;
        // A model's own wish is cut to what it can; the user's is refused with a reason.
        let context = args.ctx.or(layers.context().map(|wish| wish.min(model.config().context)));
        let wanted = session_options(context, loader.cache, 0);
        let mut session = adapters.session(&model, &wanted, &loader)?;
        let draft = args.draft.options(stores, &loader.place, &model)?;
        session.draft(draft.clone())?;
        Ok(Self {
            encoders: MediaEncoders::new(&model, projectors.clone()),
            projectors,
            waiting: args.media.files.clone(),
            media: args.media.clone(),
            encoded: Vec::new(),
            block: 0,
            perceiving: Duration::ZERO,
            name: args.model.clone(),
            loader,
            adapters,
            model,
            session,
            draft,
            load,
            options,
            system: args.system.clone().or(layers.system),
            thinking: args.think && !args.no_think,
            hide_thinking: args.hide_thinking,
            format,
            verbose: args.verbose,
            opening: layers.messages,
            messages: Vec::new(),
        })
    }

    /// Says something, with images and audio before it, and shows the answer. After an error the conversation is as before.
    pub(super) fn say(
        &mut self,
        text: &str,
        files: &[MediaFile],
        screen: &mut Screen,
    ) -> Result<Answer> {
        let mut all = std::mem::take(&mut self.waiting);
        all.extend_from_slice(files);
        let opened = |file: &MediaFile| Ok((file.name(), file.open(self.media.sight)?));
        let media: Vec<(String, Medium)> = all.iter().map(opened).collect::<Result<_>>()?;
        let (messages, encoded) = (self.messages.len(), self.encoded.len());
        self.messages.push(message::of(text, &all));
        let answered = self.surely(screen, |chat| {
            chat.encoded.truncate(encoded);
            chat.encode(&media)?;
            chat.prompt()
        });
        match &answered {
            Ok(answer) => {
                let mut message = Message::new("assistant", answer.text.clone());
                message.reasoning = Some(answer.thinking.clone()).filter(|text| !text.is_empty());
                self.messages.push(message);
            }
            Err(_) => {
                self.messages.truncate(messages);
                self.encoded.truncate(encoded);
            }
        }
        answered
    }

    /// Continues a text as it is.
    pub(super) fn complete(&mut self, text: &str, screen: &mut Screen) -> Result<Answer> {
        self.surely(screen, |chat| Ok(Prompt::text(&chat.model, text)?))
    }

    /// Answers, and where the device is lost on the way, once more on a new one.
    fn surely(
        &mut self,
        screen: &mut Screen,
        prompt: impl Fn(&mut Self) -> Result<Prompt>,
    ) -> Result<Answer> {
        let attempt = |chat: &mut Self, screen: &mut Screen| {
            let prompt = prompt(chat)?;
            chat.answer(screen, &prompt)
        };
        match attempt(self, screen) {
            Err(error) if is_lost(&error) => {
                screen.end()?;
                note("the GPU device was lost; reloading the model and starting the reply again");
                self.reload()?;
                attempt(self, screen)
            }
            result => result,
        }
    }

    /// Sees and hears what belongs to the newest message, and makes room for it.
    fn encode(&mut self, media: &[(String, Medium)]) -> Result<()> {
        let start = Instant::now();
        for (name, medium) in media {
            let encoded = block_on(self.encoders.encode(medium));
            self.encoded.push(encoded.with_context(|| name.clone())?);
        }
        self.perceiving = if media.is_empty() { Duration::ZERO } else { start.elapsed() };
        let longest = self.encoded.iter().map(EncodedMedia::longest).max().unwrap_or(0);
        if longest > self.block.max(MOST_TOKENS) {
            self.block = longest;
            self.session = self.new_session(Some(self.session.context()))?;
        }
        Ok(())
    }

    /// A session with nothing in it.
    fn new_session(&self, context: Option<usize>) -> Result<Session> {
        let options = session_options(context, self.loader.cache, self.block);
        let mut session = self.adapters.session(&self.model, &options, &self.loader)?;
        session.draft(self.draft.clone())?;
        Ok(session)
    }

    fn answer(&mut self, screen: &mut Screen, prompt: &Prompt) -> Result<Answer> {
        let (session, format) = (&mut self.session, self.format.as_ref());
        let mut answer = answer(session, &self.model, prompt, &self.options, format, screen)?;
        answer.times.load = std::mem::take(&mut self.load);
        answer.times.media = std::mem::take(&mut self.perceiving);
        Ok(answer)
    }

    /// What the model is to continue.
    fn prompt(&self) -> Result<Prompt> {
        let conversation = Conversation {
            messages: self.all_messages(),
            thinking: self.thinking,
            ..Conversation::default()
        };
        let options = ChatOptions { hide_thinking: self.hide_thinking };
        Ok(prompt_with(&self.model, &conversation, &self.encoded, options)?)
    }

    fn all_messages(&self) -> Vec<Message> {
        let system = self.system.iter().map(|text| Message::new("system", text.clone()));
        system.chain(self.opening.iter().cloned()).chain(self.messages.iter().cloned()).collect()
    }

    /// A new device, the model on it, and a session that has to read the conversation again.
    fn reload(&mut self) -> Result<()> {
        let context = Some(self.session.context());
        (self.model, self.load) = self.loader.load()?;
        self.encoders = MediaEncoders::new(&self.model, self.projectors.clone());
        // A drafter was lost with the device; answers are the same without it.
        self.draft = self.draft.take().filter(|draft| matches!(draft.source, DraftSource::Text));
        self.session = self.new_session(context)?;
        Ok(())
    }

    /// Tells what people want to know after an answer.
    pub(super) fn report(&self, answer: &Answer, verbose: bool) {
        if answer.done.finish == Finish::Context {
            let context = self.session.context();
            note(&format!(
                "the context of {context} tokens is full, so the reply ends here; use /clear or a larger --ctx (the model was trained for {})",
                self.model.config().context
            ));
        }
        if verbose {
            let mut block = timing::block(&answer.done, &answer.times, self.gpu_bytes());
            if let Some(told) = crate::draft::told(&self.session) {
                block.push_str(&format!("{:<21} {told}\n", "drafts:"));
            }
            note_block(&block);
        }
    }

    /// Bytes of weights, towers, caches and activations on the GPU.
    pub(super) fn gpu_bytes(&self) -> u64 {
        self.model.gpu_bytes() + self.encoders.gpu_bytes() + self.session.gpu_bytes()
    }

    /// Forgets what was said, and the towers until something is seen or heard again.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.encoded.clear();
        self.encoders.unload();
    }

    /// The conversation with all the model has computed of it.
    pub(super) fn save(&mut self) -> Result<Saved> {
        Ok(Saved {
            model: self.name.clone(),
            system: self.system.clone(),
            thinking: self.thinking,
            messages: self.messages.clone(),
            encoded: self.encoded.clone(),
            session: block_on(self.session.save())?,
        })
    }

    /// Goes on with a saved conversation; if it cannot be, nothing changes.
    pub(super) fn load(&mut self, saved: Saved) -> Result<()> {
        let width = self.model.config().width;
        for rows in saved.encoded.iter().flat_map(|encoded| &encoded.pieces).map(|p| &p.rows) {
            if rows.count.checked_mul(width) != Some(rows.values.len()) {
                let tower = rows.values.len() / rows.count.max(1);
                return Err(RuntimeError::OtherTower { tower, model: width }.into());
            }
        }
        let adapters = self.session.adapters();
        let restored = block_on(self.model.restore_with(adapters, &saved.session));
        self.session = restored.with_context(|| format!("it was saved with {}", saved.model))?;
        self.session.draft(self.draft.clone())?;
        (self.system, self.thinking) = (saved.system, saved.thinking);
        (self.messages, self.encoded) = (saved.messages, saved.encoded);
        // The session has the room it was saved with.
        self.block = 0;
        Ok(())
    }
}

fn session_options(context: Option<usize>, cache: CacheType, block: usize) -> SessionOptions {
    SessionOptions { context, cache, block, ..SessionOptions::default() }
}

/// A form made ready for a model's vocabulary.
fn ready(format: &Format, model: &Model) -> Result<JsonFormat> {
    Ok(format.of_model(model.tokenizer()?)?)
}

/// Whether a new device may help.
fn is_lost(error: &Error) -> bool {
    error.downcast_ref::<RuntimeError>().is_some_and(|error| error.code() == "device_lost")
}

/// What a model of the store comes with.
#[derive(Default)]
struct Layers {
    system: Option<String>,
    params: Option<Map<String, Value>>,
    messages: Vec<Message>,
}

impl Layers {
    fn of(place: &Place) -> Result<Self> {
        let Place::Store(files) = place else { return Ok(Self::default()) };
        let ModelFiles { system, params, messages, .. } = &**files;
        let read = |message: &Value| serde_json::from_value(message.clone());
        let messages: Result<Vec<Message>, _> = messages.iter().flatten().map(read).collect();
        Ok(Self {
            system: system.clone(),
            params: params.clone(),
            messages: messages.context("the messages this model comes with")?,
        })
    }

    fn context(&self) -> Option<usize> {
        let wish = self.params.as_ref()?.get("num_ctx")?.as_u64()?;
        usize::try_from(wish).ok().filter(|wish| *wish > 0)
    }
}
