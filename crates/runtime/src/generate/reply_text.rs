//! From tokens to events: complete text, stop strings, thinking and tool calls.

use std::{collections::VecDeque, rc::Rc};

use rullama_chat::{Event as Parsed, Parser, ParserOptions};
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
    /// Whether a stop string matched.
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

    /// Treats the whole reply as text: markers in it have no meaning.
    pub(crate) fn plain(mut self) -> Self {
        self.parser = None;
        self
    }

    /// The next event that was not returned yet.
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Queues an event.
    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Appends a token; true if a stop string matched.
    pub(crate) fn push(&mut self, id: u32) -> bool {
        let text = self.stream.push(&self.tokenizer.piece(id, self.render));
        let step = self.stops.push(&text);
        self.push_text(&step.text);
        self.stopped = step.matched.is_some();
        self.stopped
    }

    /// Treats the rest of the reply as text, even if it has markers.
    pub(crate) fn end_parser(&mut self) {
        if self.parser.is_some() {
            self.flush_text();
            self.finish_parser();
        }
    }

    /// Ends the reply.
    pub(crate) fn finish(&mut self, done: Done) {
        // Text after a stop string is dropped.
        if !self.stopped {
            self.flush_text();
        }
        self.finish_parser();
        self.events.push_back(Event::Done(done));
    }

    /// Reports text that was held back.
    fn flush_text(&mut self) {
        let rest = self.stops.finish() + &self.stream.finish();
        self.push_text(&rest);
    }

    fn finish_parser(&mut self) {
        if let Some(mut parser) = self.parser.take() {
            let mut parsed = Vec::new();
            parser.finish(&mut parsed);
            self.events.extend(parsed.into_iter().map(event));
        }
    }

    fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match &mut self.parser {
            None => self.events.push_back(Event::Text(text.into())),
            Some(parser) => {
                let mut parsed = Vec::new();
                parser.push(text, &mut parsed);
                self.events.extend(parsed.into_iter().map(event));
            }
        }
    }
}

fn event(parsed: Parsed) -> Event {
    match parsed {
        Parsed::Thinking(text) => Event::Thinking(text),
        Parsed::Text(text) => Event::Text(text),
        Parsed::ToolCall { index, name, arguments } => Event::ToolCall { index, name, arguments },
        Parsed::BadCall { raw } => Event::BadCall { raw },
    }
}
