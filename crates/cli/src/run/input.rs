//! What people type: lines with editing and history on a terminal, plain lines elsewhere.

use std::{
    io::{self, BufRead, IsTerminal},
    path::PathBuf,
};

use anyhow::{Context, Result};
use rustyline::{Config, DefaultEditor, error::ReadlineError};

use super::command::unquoted;
use crate::state;

/// Opens and closes text of several lines.
const QUOTES: &str = "\"\"\"";
/// Lines that are remembered.
const REMEMBERED: usize = 1000;

/// Something that gives lines.
pub(super) trait Lines {
    /// The next line.
    fn line(&mut self, prompt: &str) -> Result<Input>;
    /// Keeps what was said for later.
    fn remember(&mut self, _text: &str) {}
}

/// A line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of a file.
    End,
}

/// Where lines come from here.
pub(super) fn lines(remember: bool) -> Result<Box<dyn Lines>> {
    if io::stdin().is_terminal() {
        Ok(Box::new(Terminal::new(if remember { state::file("history") } else { None })?))
    } else {
        Ok(Box::new(Piped))
    }
}

/// A message: one line, or several between triple quotes.
pub(super) fn message(lines: &mut dyn Lines) -> Result<Input> {
    let mut text = match lines.line(">>> ")? {
        Input::Text(text) => text,
        other => return Ok(other),
    };
    let opens = text.trim_start().starts_with(QUOTES)
        || text.trim_start().strip_prefix("/set system").is_some_and(|rest| rest.contains(QUOTES));
    while opens && text.matches(QUOTES).count() == 1 {
        match lines.line("... ")? {
            Input::Text(more) => text = format!("{text}\n{more}"),
            other => return Ok(other),
        }
    }
    if !text.trim().is_empty() {
        lines.remember(&text);
    }
    let bare = text.trim();
    Ok(Input::Text(if bare.starts_with(QUOTES) { unquoted(bare).into() } else { text }))
}

/// A terminal.
struct Terminal {
    editor: DefaultEditor,
    history: Option<PathBuf>,
}

impl Terminal {
    fn new(history: Option<PathBuf>) -> Result<Self> {
        let config = Config::builder().max_history_size(REMEMBERED)?.auto_add_history(false);
        let mut editor = DefaultEditor::with_config(config.build())?;
        if let Some(file) = &history {
            // The first chat has no history.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, history })
    }
}

impl Lines for Terminal {
    fn line(&mut self, prompt: &str) -> Result<Input> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Input::Text(line)),
            Err(ReadlineError::Interrupted) => Ok(Input::Interrupted),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(error).context("cannot read the terminal"),
        }
    }

    /// History is a comfort: where it cannot be kept, the chat goes on.
    fn remember(&mut self, text: &str) {
        let _ = self.editor.add_history_entry(text);
        if let Some(file) = &self.history {
            if let Some(folder) = file.parent() {
                let _ = std::fs::create_dir_all(folder);
            }
            let _ = self.editor.save_history(file);
        }
    }
}

/// A pipe or a file.
struct Piped;

impl Lines for Piped {
    fn line(&mut self, _prompt: &str) -> Result<Input> {
        let mut line = String::new();
        let count = io::stdin().lock().read_line(&mut line).context("standard input")?;
        let line = line.trim_end_matches(['\n', '\r']).to_owned();
        Ok(if count == 0 { Input::End } else { Input::Text(line) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(Vec<&'static str>);

    impl Lines for Given {
        fn line(&mut self, _prompt: &str) -> Result<Input> {
            Ok(if self.0.is_empty() { Input::End } else { Input::Text(self.0.remove(0).into()) })
        }
    }

    fn read(lines: &[&'static str]) -> Vec<String> {
        let mut given = Given(lines.to_vec());
        let mut texts = Vec::new();
        while let Input::Text(text) = message(&mut given).expect("lines") {
            texts.push(text);
        }
        texts
    }

    #[test]
    fn messages_of_several_lines() {
        assert_eq!(read(&["one", "two"]), ["one", "two"]);
        assert_eq!(
            read(&["\"\"\"one", " two", "three\"\"\"", "four"]),
            ["one\n two\nthree", "four"]
        );
        assert_eq!(read(&["\"\"\"", "one", "\"\"\""]), ["one"]);
        assert_eq!(read(&["\"\"\"one\"\"\"", "two"]), ["one", "two"]);
        assert_eq!(read(&["say \"\"\" once", "two"]), ["say \"\"\" once", "two"]);
        assert_eq!(
            read(&["/set system \"\"\"Be", "brief\"\"\""]),
            ["/set system \"\"\"Be\nbrief\"\"\""]
        );
        assert!(read(&["\"\"\"never closed"]).is_empty());
    }
}
