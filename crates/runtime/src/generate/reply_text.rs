//! From tokens to events: complete text, stop strings, thinking and tool calls.

use std::{collections::VecDeque, rc::Rc};

use rullama_chat::{Event as Said, Parser, ParserOptions};
use rullama_tokenizer::{Render, Tokenizer, Utf8Stream};

use super::{Done, Event};
use crate::stop::StopStrings;

/// The text of a reply so far.
pub(crate) struct ReplyText {
    tokenizer: Rc<Tokenizer>,
    render: Render,
    stream: Utf8Stream,
    stops: StopStrings,
    parser: Option<Parser>,
    events: VecDeque<Event>,
    /// A stop string came.
    stopped: bool,
}

impl ReplyText {
    /// An empty reply. Without a parser, all of it is text.
    pub(crate) fn new(
        tokenizer: Rc<Tokenizer>,
        parser: Option<ParserOptions>,
        stops: &[String],
    ) -> Self {
        let render = if parser.is_some() { Render::Markers } else { Render::All };
        Self {
            tokenizer,
            render,
            stream: Utf8Stream::default(),
            stops: StopStrings::new(stops.iter().cloned()),
            parser: parser.map(Parser::new),
            events: VecDeque::new(),
            stopped: false,
        }
    }

    /// All of it is text: markers in it mean nothing.
    pub(crate) fn plain(mut self) -> Self {
        self.parser = None;
        self
    }

    /// An event that has not been reported.
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Reports another event.
    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Appends a token; true if a stop string came.
    pub(crate) fn push(&mut self, id: u32) -> bool {
        let text = self.stream.push(&self.tokenizer.piece(id, self.render));
        let step = self.stops.push(&text);
        self.say(&step.text);
        self.stopped = step.matched.is_some();
        self.stopped
    }

    /// What comes from here on is text, whatever markers it has.
    pub(crate) fn end_parser(&mut self) {
        if self.parser.is_some() {
            self.say_rest();
            self.finish_parser();
        }
    }

    /// Ends the reply.
    pub(crate) fn finish(&mut self, done: Done) {
        // After a stop string nothing follows.
        if !self.stopped {
            self.say_rest();
        }
        self.finish_parser();
        self.events.push_back(Event::Done(done));
    }

    /// Reports text that was held back.
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
