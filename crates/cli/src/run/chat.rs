//! A conversation with a model, as the program holds it.

mod settings;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Error, Result};
use rullama::{
    CacheType, Finish, MediaFile, OpenOptions, ReplyStream, SavedSession, Session, SessionOptions,
    UserMessage,
};

use super::{
    RunArgs,
    answer::{Answer, answer},
    sampling,
    screen::Screen,
    timing,
};
use crate::{
    adapters, draft,
    load::Loader,
    locate::Stores,
    media::MediaArgs,
    output::{note, note_block},
    output_file::protect,
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
    pub(super) verbose: bool,
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
        session.system = args.system.clone().or(session.system);
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

    /// Sends a message with images and audio before its text, and shows the reply. After an error the conversation is as before.
    pub(super) fn say(
        &mut self,
        text: &str,
        files: &[MediaFile],
        screen: &mut Screen,
    ) -> Result<Answer> {
        let mut message = UserMessage::new(text);
        for file in std::mem::take(&mut self.waiting).iter().chain(files) {
            protect(&file.path);
            message = message.file(file, self.media.size)?;
        }
        self.surely(screen, |session| session.stream(message.clone()))
    }

    /// Continues a text as it is.
    pub(super) fn complete(&mut self, text: &str, screen: &mut Screen) -> Result<Answer> {
        self.surely(screen, |session| session.complete(text))
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

    /// Tells what people want to know after a reply.
    pub(super) fn report(&self, answer: &Answer, verbose: bool) {
        if answer.done.finish == Finish::Context {
            let context = self.session.context();
            note(&format!(
                "the context of {context} tokens is full, so the reply ends here; use /clear or a larger --ctx (the model was trained for {})",
                self.session.model().runtime().config().context
            ));
        }
        if verbose {
            let mut block = timing::block(&answer.done, &answer.times, self.gpu_bytes());
            if let Some(told) = draft::summary(self.session.kv()) {
                block.push_str(&format!("{:<21} {told}\n", "drafts:"));
            }
            note_block(&block);
        }
    }

    /// Bytes of weights, encoders, caches and activations on the GPU.
    pub(super) fn gpu_bytes(&self) -> u64 {
        self.session.gpu_bytes()
    }

    /// Forgets what was said.
    pub(super) fn clear(&mut self) {
        self.session.clear();
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

/// Whether a new device may help.
fn is_lost(error: &Error) -> bool {
    error.downcast_ref::<rullama::Error>().is_some_and(rullama::Error::is_device_lost)
}
