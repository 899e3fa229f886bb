//! The streaming parser of model output: thoughts, text and tool calls.
//!
//! It advances one character at a time and its state depends only on the characters seen, so the chunks in which text
//! arrives do not matter. Only an incomplete marker and the whitespace before it are held back.

use serde_json::{Map, Value};

use crate::markup::Markup;
use crate::{Output, PromptEnd, Tool};

/// A part of the model's output. One thought or text may come as several events in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A piece of a thought.
    Thinking(String),
    /// A piece of the reply's text.
    Text(String),
    /// A complete tool call.
    ToolCall {
        /// Index among the calls of this message, from 0.
        index: usize,
        /// The called tool.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// A tool call that cannot be parsed, as the model wrote it, without the markers.
    BadCall {
        /// The text; [`Output::parse_call`] returns its error.
        raw: String,
    },
}

/// How thoughts are handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Thinking {
    /// They are reported.
    #[default]
    Show,
    /// They are dropped.
    Hide,
}

/// Where the output begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// In the text, or before a thought that the model opens itself.
    #[default]
    Content,
    /// Inside a thought: the prompt has opened it (see [`PromptEnd::Thinking`]).
    Thinking,
    /// Inside the text: the prompt has begun it (see [`ReplyPrefix`](crate::ReplyPrefix)), so the message is no bare call.
    Text,
}

/// Where the output after a prompt begins.
impl From<PromptEnd> for Start {
    fn from(end: PromptEnd) -> Self {
        match end {
            PromptEnd::Thinking => Self::Thinking,
            PromptEnd::Content | PromptEnd::ToolResult => Self::Content,
        }
    }
}

/// Options of [`Parser`].
#[derive(Debug, Clone, Default)]
pub struct ParserOptions {
    /// How thoughts are handled.
    pub thinking: Thinking,
    /// Where the output begins.
    pub start: Start,
    /// The markup of the model's thoughts and calls.
    pub output: Output,
    /// The declared tools. Other tools may be called too; declarations help to repair malformed calls.
    pub tools: Vec<Tool>,
}

/// The parser of one model message.
#[derive(Debug, Clone)]
pub struct Parser {
    options: ParserOptions,
    markup: Markup,
    state: State,
    /// A proper prefix of a marker.
    marker: String,
    /// White space that is dropped if a marker follows.
    space: String,
    /// Text of the current call.
    call: String,
    calls: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Content,
    /// Before the first visible character of a message that may be a bare call.
    Undecided,
    /// Text without a visible character since the last thought or call.
    FreshContent,
    /// After a thought's opening marker, with this number of bytes of the label read.
    Label(usize),
    Thinking,
    Call,
}

impl Parser {
    /// A parser at the start of a message.
    pub fn new(options: ParserOptions) -> Self {
        let markup = options.output.markup();
        let state = match options.start {
            Start::Thinking => State::Thinking,
            // A message that may be a bare call is parsed as one until a character rules that out.
            Start::Content if markup.bare_calls && !options.tools.is_empty() => State::Undecided,
            Start::Content | Start::Text => State::Content,
        };
        Self {
            options,
            markup,
            state,
            marker: String::new(),
            space: String::new(),
            call: String::new(),
            calls: 0,
        }
    }

    /// Parses the next chunk of output and appends completed events to `events`.
    pub fn push(&mut self, text: &str, events: &mut Vec<Event>) {
        for c in text.chars() {
            self.step(c, events);
        }
    }

    /// Ends the message: releases the text held back and parses an unfinished call as far as it goes.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        self.release_marker(events);
        match self.state {
            State::Call => self.end_call(events),
            State::Label(read) => self.end_label(read, events),
            _ => self.release_space(events),
        }
        self.state = State::Content;
    }

    fn step(&mut self, c: char, events: &mut Vec<Event>) {
        if c == '<' {
            // Markers contain this character only at their start.
            self.release_marker(events);
            self.marker.push(c);
            return;
        }
        if self.marker.is_empty() {
            self.text(c, events);
            return;
        }
        self.marker.push(c);
        let in_call = self.state == State::Call;
        match self.markup.marker(&self.marker, in_call) {
            Some(marker) if marker.len() == self.marker.len() => {
                self.marker.clear();
                self.marker_seen(marker, events);
            }
            Some(_) => {}
            None => self.release_marker(events),
        }
    }

    /// Treats an incomplete marker as ordinary text.
    fn release_marker(&mut self, events: &mut Vec<Event>) {
        for c in std::mem::take(&mut self.marker).chars() {
            self.text(c, events);
        }
    }

    fn marker_seen(&mut self, marker: &'static str, events: &mut Vec<Event>) {
        if let State::Label(read) = self.state {
            self.end_label(read, events);
        }
        if self.markup.keeps_space {
            self.release_space(events);
        }
        self.space.clear();
        let Markup { thought: [thought_open, thought_close], call: [call_open, _], .. } =
            self.markup;
        if self.state == State::Call {
            self.end_call(events);
            self.state = State::FreshContent;
        } else if marker == thought_open {
            self.state = State::Label(0);
        } else if marker == call_open {
            self.state = State::Call;
        } else if marker == thought_close && self.state == State::Thinking {
            self.state = State::FreshContent;
        }
        // Ignored: closing markers without an opening one, and the marker that waits for a tool's result.
    }

    fn text(&mut self, c: char, events: &mut Vec<Event>) {
        match self.state {
            State::Call => self.call.push(c),
            State::Label(read) => self.label(read, c, events),
            State::FreshContent if c.is_whitespace() && !self.markup.keeps_space => {}
            _ if c.is_whitespace() => self.space.push(c),
            State::Undecided if c == '{' => {
                self.space.clear();
                self.state = State::Call;
                self.call.push(c);
            }
            State::Content | State::FreshContent | State::Undecided => {
                self.state = State::Content;
                self.release_space(events);
                self.say(c.encode_utf8(&mut [0; 4]), events);
            }
            State::Thinking => {
                self.release_space(events);
                self.say(c.encode_utf8(&mut [0; 4]), events);
            }
        }
    }

    /// One more character where the label of a thought may be.
    fn label(&mut self, read: usize, c: char, events: &mut Vec<Event>) {
        let read_after = read + c.len_utf8();
        let label = self.markup.label;
        if !label[read..].starts_with(c) {
            self.state = State::Thinking;
            self.say(&label[..read], events);
            self.text(c, events);
        } else if read_after == label.len() {
            self.state = State::Thinking;
        } else {
            self.state = State::Label(read_after);
        }
    }

    /// The thought ends within its label. A complete label needs no line break; an incomplete one is part of the thought.
    fn end_label(&mut self, read: usize, events: &mut Vec<Event>) {
        self.state = State::Thinking;
        let label = self.markup.label;
        if label[read..] != *"\n" {
            self.say(&label[..read], events);
        }
    }

    fn end_call(&mut self, events: &mut Vec<Event>) {
        let raw = std::mem::take(&mut self.call);
        match self.options.output.parse_call(&raw, &self.options.tools) {
            Ok(call) => {
                events.push(Event::ToolCall {
                    index: self.calls,
                    name: call.name,
                    arguments: call.arguments,
                });
                self.calls += 1;
            }
            Err(_) if raw.trim().is_empty() => {}
            // Plain JSON, not a call.
            Err(_) if self.markup.bare_calls && raw.starts_with('{') => {
                self.state = State::Content;
                self.say(&raw, events);
            }
            Err(_) => events.push(Event::BadCall { raw }),
        }
    }

    fn release_space(&mut self, events: &mut Vec<Event>) {
        let space = std::mem::take(&mut self.space);
        self.say(&space, events);
    }

    /// Reports text as thought or content by the current state, appended to the last event if of the same kind.
    fn say(&mut self, text: &str, events: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        let thinking = self.state == State::Thinking;
        match events.last_mut() {
            _ if thinking && self.options.thinking == Thinking::Hide => {}
            Some(Event::Thinking(last)) if thinking => last.push_str(text),
            Some(Event::Text(last)) if !thinking => last.push_str(text),
            _ if thinking => events.push(Event::Thinking(text.to_owned())),
            _ => events.push(Event::Text(text.to_owned())),
        }
    }
}
