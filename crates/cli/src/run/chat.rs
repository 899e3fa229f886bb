//! A conversation with a model. Messages live on the host, so that they outlive a lost device.

mod settings;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context, Error, Result};
use pollster::block_on;
use rullama_chat::{Conversation, Message};
use rullama_runtime::{
    Model, RuntimeError, Session,
    generate::{ChatOptions, Finish, JsonFormat, Prompt, prompt_of},
    model::CacheType,
    options::SamplingOptions,
    session::SessionOptions,
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
        let adapters = Chosen::new(&place, &args.adapters)?;
        let context = args.ctx.or(layers.context());
        let loader = Loader::new(place, &args.device, context, CacheType::F16);
        let (model, load) = loader.load()?;
        let options = sampling::layered(model.gguf(), layers.params.as_ref(), &args.sampling)?;
        let format = args.format.as_ref().map(|format| ready(format, &model)).transpose()?;
        // A model's own wish is cut to what it can; the user's is refused with a reason.
        let context = args.ctx.or(layers.context().map(|wish| wish.min(model.config().context)));
        let session = adapters.session(&model, &session_options(context, loader.cache), &loader)?;
        Ok(Self {
            name: args.model.clone(),
            loader,
            adapters,
            model,
            session,
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

    /// Says something and shows the answer. After an error the conversation is as before.
    pub(super) fn say(&mut self, text: &str, screen: &mut Screen) -> Result<Answer> {
        self.messages.push(Message::new("user", text));
        let answered = self.surely(screen, Self::prompt);
        match &answered {
            Ok(answer) => {
                let mut message = Message::new("assistant", answer.text.clone());
                message.reasoning = Some(answer.thinking.clone()).filter(|text| !text.is_empty());
                self.messages.push(message);
            }
            Err(_) => {
                self.messages.pop();
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
        prompt: impl Fn(&Self) -> Result<Prompt>,
    ) -> Result<Answer> {
        match self.answer(screen, &prompt(self)?) {
            Err(error) if is_lost(&error) => {
                screen.end()?;
                note(
                    "the GPU device was lost; opening it again, loading the model and answering anew",
                );
                self.reload()?;
                self.answer(screen, &prompt(self)?)
            }
            result => result,
        }
    }

    fn answer(&mut self, screen: &mut Screen, prompt: &Prompt) -> Result<Answer> {
        let (session, format) = (&mut self.session, self.format.as_ref());
        let mut answer = answer(session, &self.model, prompt, &self.options, format, screen)?;
        answer.times.load = std::mem::take(&mut self.load);
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
        Ok(prompt_of(&self.model, &conversation, options)?)
    }

    fn all_messages(&self) -> Vec<Message> {
        let system = self.system.iter().map(|text| Message::new("system", text.clone()));
        system.chain(self.opening.iter().cloned()).chain(self.messages.iter().cloned()).collect()
    }

    /// A new device, the model on it, and a session that has to read the conversation again.
    fn reload(&mut self) -> Result<()> {
        let context = Some(self.session.context());
        let (model, load) = self.loader.load()?;
        let options = session_options(context, self.loader.cache);
        self.session = self.adapters.session(&model, &options, &self.loader)?;
        (self.model, self.load) = (model, load);
        Ok(())
    }

    /// Tells what people want to know after an answer.
    pub(super) fn report(&self, answer: &Answer, verbose: bool) {
        if answer.done.finish == Finish::Context {
            let context = self.session.context();
            note(&format!(
                "the context of {context} tokens is full, so the answer ends here; start anew (/clear), or use a larger --ctx (the model was trained for {})",
                self.model.config().context
            ));
        }
        if verbose {
            note_block(&timing::block(&answer.done, &answer.times, self.gpu_bytes()));
        }
    }

    /// Bytes of weights, caches and activations on the GPU.
    pub(super) fn gpu_bytes(&self) -> u64 {
        self.model.gpu_bytes() + self.session.gpu_bytes()
    }

    /// Forgets what was said.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
    }

    /// The conversation with all the model has computed of it.
    pub(super) fn save(&mut self) -> Result<Saved> {
        Ok(Saved {
            model: self.name.clone(),
            system: self.system.clone(),
            thinking: self.thinking,
            messages: self.messages.clone(),
            session: block_on(self.session.save())?,
        })
    }

    /// Goes on with a saved conversation; if it cannot be, nothing changes.
    pub(super) fn load(&mut self, saved: Saved) -> Result<()> {
        let adapters = self.session.adapters();
        let restored = block_on(self.model.restore_with(adapters, &saved.session));
        self.session = restored.with_context(|| format!("it was saved with {}", saved.model))?;
        (self.system, self.thinking) = (saved.system, saved.thinking);
        self.messages = saved.messages;
        Ok(())
    }
}

fn session_options(context: Option<usize>, cache: CacheType) -> SessionOptions {
    SessionOptions { context, cache, ..SessionOptions::default() }
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
