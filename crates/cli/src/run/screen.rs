//! Where answers appear: thoughts dimmed on a terminal, and nothing that could move its cursor.

use std::io::{self, IsTerminal};

use anyhow::Result;
use rullama_runtime::generate::Event;

use crate::output::{print, safe_lines};

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// What shows an answer as it comes.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: bool,
    silent: bool,
    hide_thinking: bool,
    /// Inside a thought.
    thinking: bool,
    /// Something was shown, and a line may be open.
    wrote: bool,
}

impl Screen {
    /// Standard output.
    pub(super) fn new(hide_thinking: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        Self { terminal, silent: false, hide_thinking, thinking: false, wrote: false }
    }

    /// Shows nothing.
    pub(super) fn silent() -> Self {
        Self { terminal: false, silent: true, hide_thinking: true, thinking: false, wrote: false }
    }

    /// Shows a piece of an answer.
    pub(super) fn show(&mut self, event: &Event) -> Result<()> {
        let text = self.text_of(event);
        if text.is_empty() || self.silent {
            return Ok(());
        }
        self.wrote = true;
        print(&text)
    }

    /// Ends the line of an answer.
    pub(super) fn end(&mut self) -> Result<()> {
        let closing = self.after_thought();
        if std::mem::take(&mut self.wrote) { print(&(closing + "\n")) } else { Ok(()) }
    }

    fn text_of(&mut self, event: &Event) -> String {
        match event {
            Event::Thinking(_) if self.hide_thinking => String::new(),
            Event::Thinking(piece) => {
                let opening = if self.thinking { "" } else { "Thinking...\n" };
                self.thinking = true;
                self.dimmed(&format!("{opening}{piece}"))
            }
            Event::Text(piece) => self.after_thought() + &self.plain(piece),
            Event::ToolCall { name, arguments, .. } => {
                let arguments = serde_json::Value::Object(arguments.clone());
                self.after_thought() + &self.plain(&format!("{name}({arguments})"))
            }
            Event::BadCall { raw } => self.after_thought() + &self.plain(raw),
            _ => String::new(),
        }
    }

    fn after_thought(&mut self) -> String {
        if std::mem::take(&mut self.thinking) {
            self.dimmed("\n...done thinking.\n\n")
        } else {
            String::new()
        }
    }

    fn dimmed(&self, text: &str) -> String {
        if self.terminal { format!("{DIM}{}{PLAIN}", safe_lines(text)) } else { text.into() }
    }

    fn plain(&self, text: &str) -> String {
        if self.terminal { safe_lines(text) } else { text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(terminal: bool, hide_thinking: bool) -> String {
        let mut screen = Screen { terminal, hide_thinking, ..Screen::silent() };
        let events = [
            Event::Thinking("So".into()),
            Event::Thinking(" it is.".into()),
            Event::Text("4\x1b[2J".into()),
            Event::Text("!".into()),
        ];
        events.iter().map(|event| screen.text_of(event)).collect()
    }

    #[test]
    fn thoughts_are_told_from_answers() {
        assert_eq!(
            shown(false, false),
            "Thinking...\nSo it is.\n...done thinking.\n\n4\x1b[2J!",
            "a file gets what the model wrote"
        );
        assert_eq!(shown(false, true), "4\x1b[2J!");
        assert_eq!(
            shown(true, false),
            "\x1b[2mThinking...\nSo\x1b[0m\x1b[2m it is.\x1b[0m\x1b[2m\n...done thinking.\n\n\x1b[0m4\\u{1b}[2J!"
        );
    }
}
