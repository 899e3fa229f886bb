//! From tokens to events: text as it becomes whole, stop texts, thoughts and calls.

use std::collections::VecDeque;

use rullama_chat::{Event as Said, Parser, ParserOptions};
use rullama_tokenizer::{Render, Stream, Tokenizer};

use super::{Done, Event};
use crate::stop::StopStrings;

/// What an answer has said so far.
pub(crate) struct Speech<'m> {
    stream: Stream<'m>,
    stops: StopStrings,
    parser: Option<Parser>,
    events: VecDeque<Event>,
    /// A stop text came.
    stopped: bool,
}

impl<'m> Speech<'m> {
    /// Nothing yet. Without a parser, all of it is text.
    pub(crate) fn new(
        tokenizer: &'m Tokenizer,
        parser: Option<ParserOptions>,
        stops: &[String],
    ) -> Self {
        let render = if parser.is_some() { Render::Markers } else { Render::All };
        Self {
            stream: tokenizer.stream(render),
            stops: StopStrings::new(stops.iter().cloned()),
            parser: parser.map(Parser::new),
            events: VecDeque::new(),
            stopped: false,
        }
    }

    /// All of it is text, whatever stands in it.
    pub(crate) fn plain(mut self) -> Self {
        self.parser = None;
        self
    }

    /// An event that has not been told.
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Something else happened.
    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// A token is said; true if a stop text came.
    pub(crate) fn push(&mut self, id: u32) -> bool {
        let text = self.stream.push(id);
        let step = self.stops.push(&text);
        self.say(&step.text);
        self.stopped = step.matched.is_some();
        self.stopped
    }

    /// What comes from here on is text.
    pub(crate) fn end_parser(&mut self) {
        if self.parser.is_some() {
            self.say_rest();
            self.finish_parser();
        }
    }

    /// Nothing more is said.
    pub(crate) fn finish(&mut self, done: Done) {
        // After a stop text nothing is said; its watch is over then.
        if !self.stopped {
            self.say_rest();
        }
        self.finish_parser();
        self.events.push_back(Event::Done(done));
    }

    /// Says what was held back.
    fn say_rest(&mut self) {
        let rest = self.stops.finish() + &self.stream.finish();
        self.say(&rest);
    }

    fn finish_parser(&mut self) {
        if let Some(mut parser) = self.parser.take() {
            let mut said = Vec::new();
            parser.finish(&mut said);
            self.events.extend(said.into_iter().map(event));
        }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match &mut self.parser {
            None => self.events.push_back(Event::Text(text.into())),
            Some(parser) => {
                let mut said = Vec::new();
                parser.push(text, &mut said);
                self.events.extend(said.into_iter().map(event));
            }
        }
    }
}

fn event(said: Said) -> Event {
    match said {
        Said::Thinking(text) => Event::Thinking(text),
        Said::Text(text) => Event::Text(text),
        Said::ToolCall { index, name, arguments } => Event::ToolCall { index, name, arguments },
        Said::BadCall { raw } => Event::BadCall { raw },
    }
}
