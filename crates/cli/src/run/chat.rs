//! A conversation with a model, as the program holds it.

mod settings;
#[cfg(test)]
mod tests;

use std::{path::Path, time::Duration};

use anyhow::{Error, Result};
use rullama::{
    CacheType, Finish, MediaFile, OpenOptions, ReplyStream, SavedSession, Session, SessionOptions,
    UserMessage,
};
use serde_json::{Value, json};

use super::{
    RunArgs,
    answer::{Answer, answer},
    command::{Setting, Topic},
    sampling,
    screen::Screen,
    talk::Conversation,
    timing,
};
use crate::{
    adapters, draft,
    load::Loader,
    locate::Stores,
    media::MediaArgs,
    memory,
    output::{note, note_block, safe},
    output_file::{OutputFile, protect},
};

/// A session, and what the flags say beside it.
pub(super) struct Chat {
    loader: Loader,
    session: Session,
    media: MediaArgs,
    /// Files named on the command line, for the first message.
    waiting: Vec<MediaFile>,
    /// Time the model took to load, until a reply has reported it.
    load: Duration,
    /// Whether times are shown after each reply.
    verbose: bool,
}

impl Chat {
    /// Loads the model with what its store says and the flags say over that.
    pub(super) fn start(stores: &Stores, args: &RunArgs) -> Result<Self> {
        let location = stores.find(&args.model)?;
        if let Some(projector) = &args.media.mmproj {
            stores.find(projector)?;
        }
        let options = OpenOptions {
            stores: stores.0.clone(),
            adapters: args.adapters.protected(),
            projector: args.media.mmproj.clone(),
            ..args.device.options(args.ctx, CacheType::F16)
        };
        let loader = Loader { location, options };
        let model = loader.open(&args.model)?;
        let (sampling, warnings) = model.sampling()?;
        let sampling = sampling::layered(sampling, &warnings, &args.sampling)?;
        let load = model.load_time();
        let options = SessionOptions {
            context: None,
            draft: args.draft.source(),
            draft_tokens: Some(args.draft.draft_tokens),
        };
        let mut session = model.session_with(&options)?;
        session.unused_drafter().into_iter().for_each(draft::note_unused);
        adapters::note_without_effect(session.kv());
        session.sampling = sampling;
        if let Some(system) = &args.system {
            session.system = Some(system.clone()).filter(|text| !text.is_empty());
        }
        session.thinking = args.think && !args.no_think;
        session.hide_thinking = args.hide_thinking;
        session.set_format(args.format.clone())?;
        Ok(Self {
            loader,
            session,
            media: args.media.clone(),
            waiting: args.media.files.clone(),
            load,
            verbose: args.verbose,
        })
    }

    /// Replies, and where the device is lost on the way, once more on a new one.
    fn surely(
        &mut self,
        screen: &mut Screen,
        stream: impl Fn(&mut Session) -> Result<ReplyStream<'_>, rullama::Error>,
    ) -> Result<Answer> {
        let attempt = |session: &mut Session, screen: &mut Screen| answer(stream(session)?, screen);
        let mut answer = match attempt(&mut self.session, screen) {
            Err(error) if is_lost(&error) => {
                screen.end()?;
                note("the GPU device was lost; reloading the model and starting the reply again");
                let model = self.loader.open(self.session.model().name())?;
                self.load = model.load_time();
                self.session.move_to(model)?;
                attempt(&mut self.session, screen)?
            }
            result => result?,
        };
        answer.times.load = std::mem::take(&mut self.load);
        Ok(answer)
    }

    /// The conversation with all the model has computed of it.
    pub(super) fn save(&mut self) -> Result<SavedSession> {
        Ok(self.session.save()?)
    }

    /// Goes on with a saved conversation; if it cannot be, nothing changes.
    pub(super) fn load(&mut self, saved: SavedSession) -> Result<()> {
        Ok(self.session.load(saved)?)
    }
}

impl Conversation for Chat {
    fn greeting(&self) -> String {
        let model = self.session.model();
        let (name, device) = (safe(model.name()), safe(model.device().name()));
        format!("{name} on {device}. Type /help for commands, /bye to exit.\n")
    }

    fn say(&mut self, text: &str, files: &[MediaFile], screen: &mut Screen) -> Result<Answer> {
        let mut message = UserMessage::new(text);
        for file in std::mem::take(&mut self.waiting).iter().chain(files) {
            protect(&file.path);
            message = message.file(file, self.media.size)?;
        }
        self.surely(screen, |session| session.stream(message.clone()))
    }

    fn complete(&mut self, text: &str, screen: &mut Screen) -> Result<Answer> {
        self.surely(screen, |session| session.complete(text))
    }

    fn report(&self, answer: &Answer) {
        if answer.done.finish == Finish::Context {
            let context = self.session.context();
            note(&format!(
                "the context of {context} tokens is full, so the reply ends here; use /clear or a larger --ctx (the model was trained for {})",
                self.session.model().runtime().config().context
            ));
        }
        if self.verbose {
            let gpu_bytes = Some(self.session.gpu_bytes());
            let mut block = timing::block(&answer.done, &answer.times, gpu_bytes);
            if let Some(told) = draft::summary(self.session.kv()) {
                block.push_str(&format!("{:<21} {told}\n", "drafts:"));
            }
            note_block(&block);
        }
    }

    fn figures(&self, answer: &Answer) -> Value {
        json!({
            "cached_tokens": answer.done.cached_tokens,
            "media_seconds": answer.times.media.as_secs_f64(),
            "gpu_bytes": self.session.gpu_bytes(),
            "host_bytes": memory::own(),
        })
    }

    fn set(&mut self, setting: Setting) -> Result<()> {
        self.apply(setting)
    }

    fn show(&self, topic: Topic) -> Result<String> {
        self.describe(topic)
    }

    fn clear(&mut self) {
        self.session.clear();
    }

    fn save_to(&mut self, file: &Path) -> Result<()> {
        let mut out = OutputFile::create(file)?;
        self.save()?.write(&mut out)?;
        out.finish()
    }

    fn load_from(&mut self, file: &Path) -> Result<usize> {
        let saved = SavedSession::read_file(file)?;
        let count = saved.messages.len();
        self.load(saved)?;
        Ok(count)
    }
}

/// Whether a new device may help.
fn is_lost(error: &Error) -> bool {
    error.downcast_ref::<rullama::Error>().is_some_and(rullama::Error::is_device_lost)
}
