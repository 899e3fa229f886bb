//! One answer: tokens until it ends or somebody presses Ctrl-C.

use std::time::{Duration, Instant};

use anyhow::Result;
use pollster::block_on;
use rullama_runtime::{
    Model, Session,
    generate::{Done, Event, Generation, JsonFormat, Prompt},
    options::{SamplingOptions, resolve_seed},
};

use super::{screen::Screen, timing::Times};
use crate::interrupt;

/// An answer and what it took.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) done: Done,
    pub(super) times: Times,
}

/// Answers a prompt and shows the answer as it comes.
pub(super) fn answer(
    session: &mut Session,
    model: &Model,
    prompt: &Prompt,
    options: &SamplingOptions,
    format: Option<&JsonFormat>,
    screen: &mut Screen,
) -> Result<Answer> {
    let start = Instant::now();
    let seed = resolve_seed(options.seed, entropy());
    let mut generation = match format {
        None => Generation::new(session, model, prompt, options, seed)?,
        Some(format) => {
            let held_to = format.constraint();
            Generation::constrained(session, model, prompt, options, seed, held_to)?
        }
    };
    block_on(generation.prefill(&mut |_| !interrupt::pressed()))?;
    let (mut text, mut thinking, mut first) = (String::new(), String::new(), None);
    loop {
        while let Some(event) = generation.ready() {
            match &event {
                Event::Text(piece) => text.push_str(piece),
                Event::Thinking(piece) => thinking.push_str(piece),
                Event::Done(done) => {
                    let times = times(start.elapsed(), first);
                    return Ok(Answer { text, thinking, done: *done, times });
                }
                _ => {}
            }
            screen.show(&event)?;
        }
        if interrupt::pressed() {
            generation.cancel();
            continue;
        }
        block_on(generation.step())?;
        first.get_or_insert_with(|| start.elapsed());
    }
}

/// A prompt is read when the first token is there: before that, a GPU has only been told to read it.
fn times(total: Duration, first: Option<Duration>) -> Times {
    let prompt = first.unwrap_or(total);
    Times { load: Duration::ZERO, media: Duration::ZERO, prompt, answer: total - prompt }
}

/// A number that differs from run to run.
pub(super) fn entropy() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) & u64::from(u32::MAX)) as u32
}
