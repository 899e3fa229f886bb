//! A reply, complete or as a stream of events.

use std::time::{Duration, Instant};

use pollster::block_on;
use rullama_chat::{Message, ToolCall};
use rullama_runtime::{
    generate::{Done, Event, Finish, Generation},
    media::EncodedMedia,
};
use serde_json::Value;

use crate::error::Error;

/// A complete reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// The model's thinking before it; may be empty.
    pub thinking: String,
    /// Tool calls it requests.
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended, and token counts.
    pub done: Done,
    /// Timings.
    pub timings: Timings,
}

/// Timings of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Encoding images and audio.
    pub media: Duration,
    /// Time to first token.
    pub prompt: Duration,
    /// Generating the other tokens.
    pub generation: Duration,
}

/// A reply as it is generated: an iterator over events. The last one is [`Event::Done`]; the reply is part of the conversation then.
///
/// Dropping it earlier, or [`Self::cancel`], ends the reply: the conversation keeps the text generated so far; if there is none, the user message
/// is removed, too. After an error the conversation is as before the message.
///
/// ```
/// use rullama::{Event, Model};
///
/// let mut session = Model::open("demo")?.session()?;
/// let mut text = String::new();
/// for event in session.stream("What is 23 + 45?")? {
///     if let Event::Text(piece) = event? {
///         text.push_str(&piece);
///     }
/// }
/// assert!(text.contains("68"));
/// # Ok::<(), rullama::Error>(())
/// ```
pub struct ReplyStream<'s> {
    generation: Generation<'s>,
    conversation: Option<Turn<'s>>,
    text: String,
    thinking: String,
    tool_calls: Vec<ToolCall>,
    done: Option<Done>,
    failed: bool,
    start: Instant,
    first: Option<Duration>,
    media: Duration,
    total: Duration,
}

/// The conversation a reply belongs to, and its length before the message.
pub(crate) struct Turn<'s> {
    pub(crate) messages: &'s mut Vec<Message>,
    pub(crate) encoded: &'s mut Vec<EncodedMedia>,
    pub(crate) before: Length,
}

/// The length of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Length {
    pub(crate) messages: usize,
    pub(crate) encoded: usize,
}

impl<'s> ReplyStream<'s> {
    pub(crate) fn new(
        generation: Generation<'s>,
        conversation: Option<Turn<'s>>,
        media: Duration,
    ) -> Self {
        Self {
            generation,
            conversation,
            text: String::new(),
            thinking: String::new(),
            tool_calls: Vec::new(),
            done: None,
            failed: false,
            start: Instant::now(),
            first: None,
            media,
            total: Duration::ZERO,
        }
    }

    /// Processes the rest of the prompt. `each` gets the number of tokens done and may end the reply by returning false.
    /// The iterator does this by itself; call it to show or time prefill.
    ///
    /// # Errors
    /// If the device fails.
    pub fn prefill(&mut self, each: &mut dyn FnMut(usize) -> bool) -> Result<(), Error> {
        let done = block_on(self.generation.prefill(each));
        self.checked(done)
    }

    /// Generates one token, whose events [`Self::ready`] returns; false after the end. For programs that stop between tokens.
    ///
    /// # Errors
    /// If the device fails.
    pub fn step(&mut self) -> Result<bool, Error> {
        block_on(self.step_async())
    }

    /// Async variant of [`Self::step`].
    ///
    /// # Errors
    /// As [`Self::step`].
    pub async fn step_async(&mut self) -> Result<bool, Error> {
        let stepped = self.generation.step().await;
        self.first.get_or_insert_with(|| self.start.elapsed());
        self.checked(stepped)
    }

    /// The next event of the tokens generated so far.
    pub fn ready(&mut self) -> Option<Event> {
        let event = self.generation.ready()?;
        match &event {
            Event::Text(piece) => self.text.push_str(piece),
            Event::Thinking(piece) => self.thinking.push_str(piece),
            Event::ToolCall { name, arguments, .. } => self.tool_calls.push(ToolCall {
                id: None,
                name: name.clone(),
                arguments: Value::Object(arguments.clone()),
            }),
            Event::Done(done) => {
                self.done = Some(*done);
                self.total = self.start.elapsed();
                if done.finish == Finish::Cancelled {
                    self.keep_or_undo();
                } else {
                    self.keep();
                }
            }
            Event::BadCall { .. } | Event::Logprobs(_) => {}
        }
        Some(event)
    }

    /// The next event, async; `None` after [`Event::Done`].
    ///
    /// ```
    /// use rullama::{Event, Model};
    ///
    /// # fn main() -> Result<(), rullama::Error> {
    /// # pollster_lite(async {
    /// let mut session = Model::open("demo")?.session()?;
    /// let mut stream = session.stream("Hello")?;
    /// while let Some(event) = stream.next_async().await? {
    ///     if let Event::Text(piece) = event {
    ///         print!("{piece}");
    ///     }
    /// }
    /// # Ok(()) })
    /// # }
    /// # fn pollster_lite<T>(work: impl Future<Output = T>) -> T {
    /// #     let mut work = std::pin::pin!(work);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(done) = work.as_mut().poll(&mut context) { return done; }
    /// #     }
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub async fn next_async(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready() {
                return Ok(Some(event));
            }
            if !self.step_async().await? {
                return Ok(None);
            }
        }
    }

    /// Ends the reply here; text held back and [`Event::Done`] are still reported.
    pub fn cancel(&mut self) {
        self.generation.cancel();
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// If the device fails.
    pub fn finish(mut self) -> Result<Reply, Error> {
        for event in self.by_ref() {
            event?;
        }
        Ok(self.reply())
    }

    /// The reply so far; complete after [`Event::Done`].
    pub fn reply(&self) -> Reply {
        let prompt = self.first.unwrap_or(self.total);
        let ended = Done {
            finish: Finish::Cancelled,
            prompt_tokens: 0,
            cached_tokens: 0,
            answer_tokens: 0,
        };
        Reply {
            text: self.text.clone(),
            thinking: self.thinking.clone(),
            tool_calls: self.tool_calls.clone(),
            done: self.done.unwrap_or(ended),
            timings: Timings {
                media: self.media,
                prompt,
                generation: self.total.saturating_sub(prompt),
            },
        }
    }

    /// Adds the reply to the conversation.
    fn keep(&mut self) {
        if let Some(turn) = self.conversation.take() {
            let mut message = Message::new("assistant", self.text.clone());
            message.reasoning = Some(self.thinking.clone()).filter(|text| !text.is_empty());
            message.tool_calls = self.tool_calls.clone();
            turn.messages.push(message);
        }
    }

    /// Adds a reply that was ended early to the conversation, or, where there is nothing of it yet, undoes the turn.
    fn keep_or_undo(&mut self) {
        let empty = self.text.is_empty() && self.thinking.is_empty() && self.tool_calls.is_empty();
        match self.conversation.take() {
            Some(turn) if empty => turn.undo(),
            turn => {
                self.conversation = turn;
                self.keep();
            }
        }
    }

    /// On an error, undoes the turn.
    fn checked<T, E: Into<Error>>(&mut self, result: Result<T, E>) -> Result<T, Error> {
        result.map_err(|error| {
            self.failed = true;
            if let Some(turn) = self.conversation.take() {
                turn.undo();
            }
            error.into()
        })
    }
}

impl Turn<'_> {
    /// Removes the message that the reply was for.
    pub(crate) fn undo(self) {
        self.messages.truncate(self.before.messages);
        self.encoded.truncate(self.before.encoded);
    }
}

impl Iterator for ReplyStream<'_> {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed { None } else { block_on(self.next_async()).transpose() }
    }
}

impl Drop for ReplyStream<'_> {
    fn drop(&mut self) {
        self.keep_or_undo();
    }
}
