//! One reply: tokens until it ends or Ctrl-C is pressed.

use anyhow::Result;
use rullama::{Done, Event, Reply, ReplyStream};

use super::{screen::Screen, timing::Times};
use crate::interrupt;

/// A reply and what it took.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) done: Done,
    pub(super) times: Times,
}

impl From<Reply> for Answer {
    fn from(Reply { text, thinking, done, timings, .. }: Reply) -> Self {
        let times = Times {
            load: std::time::Duration::ZERO,
            media: timings.media,
            prompt: timings.prompt,
            answer: timings.generation,
        };
        Self { text, thinking, done, times }
    }
}

/// Shows a reply as it comes.
pub(super) fn answer(mut stream: ReplyStream<'_>, screen: &mut Screen) -> Result<Answer> {
    stream.prefill(&mut |_| !interrupt::pressed())?;
    loop {
        while let Some(event) = stream.ready() {
            if matches!(event, Event::Done(_)) {
                return Ok(stream.reply().into());
            }
            screen.show(&event)?;
        }
        if interrupt::pressed() {
            stream.cancel();
            continue;
        }
        stream.step()?;
    }
}
