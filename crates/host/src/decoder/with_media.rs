//! Requests with images or audio: in a session of their own, while the scheduler goes on with the others.

use std::rc::Rc;

use pollster::block_on;
use rullama_api::{ApiError, GenerationEvent, GenerationRequest, Input};
use rullama_runtime::{
    EncodedMedia, RuntimeError, Session,
    generate::Generation,
    session::{MOST_TOKENS, SessionOptions},
};

use super::{Decoder, reading, seed};
use crate::{
    choice::{Choice, Group},
    error::of_runtime,
    job::{Job, Task},
    prompt::{Built, build},
};

impl Decoder<'_> {
    /// Runs a request with images or audio to its end.
    ///
    /// # Errors
    /// If the device is lost.
    pub(super) fn run_with_media(&mut self, job: &Job) -> Result<(), ApiError> {
        let Task::Generate { request, events } = &job.task else { return Ok(()) };
        if !events.is_closed() {
            let prepared = self.prepared(request);
            let run = prepared.map(|(built, longest)| {
                let group = Rc::new(self.group(request, &built, events, job.arrived));
                self.run_all(request, &built, longest, &group)
            });
            match run {
                Ok(result) => result?,
                Err(error) => drop(events.send(GenerationEvent::Failed(error))),
            }
        }
        self.ended();
        Ok(())
    }

    /// The prompts, and the soft tokens of the largest image.
    fn prepared(&mut self, request: &GenerationRequest) -> Result<(Vec<Built>, usize), ApiError> {
        let media = match &request.input {
            Input::Chat(chat) => &chat.media,
            Input::Prompt(prompt) => &prompt.media,
            Input::Load => return Ok((Vec::new(), 0)),
        };
        let media = block_on(self.encoded.all(media))?;
        let longest = media.iter().map(EncodedMedia::longest).max().unwrap_or(0);
        Ok((build(&self.model, request, &media, self.scheduler.context())?, longest))
    }

    fn run_all(
        &mut self,
        request: &GenerationRequest,
        built: &[Built],
        longest: usize,
        group: &Rc<Group>,
    ) -> Result<(), ApiError> {
        let mut index = 0;
        for one in built {
            for _ in 0..request.n.max(1) {
                let mut reading = reading(request, one);
                // Soft tokens cannot be sent to clients.
                reading.context = None;
                let mut choice = Choice::new(group, index, one.prompt.tokens.len(), reading);
                let run = self.run_one(request, one, longest, &mut choice, index);
                if let Err(error) = run {
                    choice.fail(error.clone());
                    let is_lost = matches!(error, ApiError::Internal { .. });
                    return if is_lost { Err(error) } else { Ok(()) };
                }
                self.inbox.registry().count(|metrics| choice.count(metrics));
                index += 1;
            }
        }
        Ok(())
    }

    fn run_one(
        &mut self,
        request: &GenerationRequest,
        built: &Built,
        longest: usize,
        choice: &mut Choice,
        index: u32,
    ) -> Result<(), ApiError> {
        let failed = |error: RuntimeError| of_runtime(&error);
        let options = self.options(request)?;
        let constraint = self.constraint(request, built)?;
        let adapters = self.adapters.of_request(request.lora.as_deref())?;
        let mut session = self.session(longest).map_err(failed)?;
        session.set_adapters(adapters.as_ref()).map_err(failed)?;
        let (model, seed) = (self.model.clone(), seed(request, index));
        let prompt = &built.prompt;
        let mut generation = match constraint {
            None => Generation::new(&mut session, &model, prompt, &options, seed),
            Some(form) => {
                Generation::constrained(&mut session, &model, prompt, &options, seed, form)
            }
        }
        .map_err(failed)?;
        let tokenizer = model.tokenizer().map_err(failed)?;
        while !choice.is_over() {
            let more = block_on(generation.step()).map_err(failed)?;
            let mut events = Vec::new();
            while let Some(event) = generation.ready() {
                events.push(event);
            }
            if more {
                // Which token it was matters to nobody here.
                choice.token(0);
            }
            events.into_iter().for_each(|event| choice.event(event, tokenizer));
            if !more {
                break;
            }
            self.work_beside()?;
        }
        drop(generation);
        self.session = Some(session);
        Ok(())
    }

    /// The session, large enough for an image of so many soft tokens.
    fn session(&mut self, longest: usize) -> Result<Session, RuntimeError> {
        let known = self.session.take();
        if let Some(session) = known.filter(|_| longest <= self.block.max(MOST_TOKENS)) {
            return Ok(session);
        }
        self.block = longest;
        self.model.session(&SessionOptions {
            context: Some(self.scheduler.context()),
            cache: self.inbox.registry().options.open.cache,
            block: longest,
            ..SessionOptions::default()
        })
    }
}
