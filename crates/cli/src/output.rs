//! Printing: tables for people, JSON for programs.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// The reader of standard output closed it (`| head`): the program ends without a message, as if it were done.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl std::fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for OutputClosed {}

/// Writes to standard output. A closed one ends the command by an error, not by `exit`: the GPU must be released first.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        result => result.context("cannot write to standard output"),
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    print(&(serde_json::to_string(value)? + "\n"))
}

/// Tells the user something that is no failure, on standard error.
pub(crate) fn note(text: &str) {
    // Nobody reads it where standard error is closed.
    let _ = writeln!(io::stderr(), "rullama: {}", safe(text));
}

/// Prints lines of our own on standard error.
pub(crate) fn note_block(text: &str) {
    let _ = write!(io::stderr(), "{text}");
}

/// No column is wider than this; what is longer sticks out, so that one long cell does not stretch all rows.
const WIDEST: usize = 100;

/// Columns, each as wide as its widest cell.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let width = |cell: &String| cell.chars().count();
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = WIDEST.min(width(cell).max(*widest));
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut padding = 0;
        for (cell, widest) in row.iter().zip(&widths) {
            text.push_str(&" ".repeat(padding));
            text.push_str(cell);
            padding = widest.saturating_sub(width(cell)) + 4;
        }
        text.push('\n');
    }
    text
}

/// Bytes as Ollama prints them: decimal units.
pub(crate) fn bytes(count: u64) -> String {
    let units =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
    for (size, unit) in units {
        if count >= size {
            let value = count as f64 / size as f64;
            return if value >= 10.0 {
                format!("{value:.0} {unit}")
            } else {
                format!("{value:.1} {unit}")
            };
        }
    }
    format!("{count} B")
}

/// Text from a file for a terminal: characters that move the cursor or turn the direction are shown, not obeyed.
pub(crate) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_layout(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A model's words for a terminal: like [`safe`], but lines and tabs are obeyed.
pub(crate) fn safe_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {}
            _ if c.is_control() => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}

/// Marks of writing direction, with which a name can be made to look like another, and odd line breaks.
fn is_layout(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A progress bar over bytes on standard error; invisible where nobody looks.
pub(crate) fn progress(total: u64, what: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
    );
    let bar = ProgressBar::new(total).with_message(what.to_owned());
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 KB"),
            (7_200_000_000, "7.2 GB"),
            (15_776_467, "16 MB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["NAME".into(), "SIZE".into()], vec!["gemma4:e2b".into(), "7 GB".into()]];
        assert_eq!(table(&rows), "NAME          SIZE\ngemma4:e2b    7 GB\n");
    }

    #[test]
    fn long_cells_do_not_stretch_the_table() {
        let long = "x".repeat(70_000);
        let rows = [vec![long.clone(), "1".into()], vec!["y".into(), "2".into()]];
        assert_eq!(table(&rows), format!("{long}    1\ny{}2\n", " ".repeat(103)));
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(safe("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(safe("\u{9b}2J \u{202e}fugg"), "\\u{9b}2J \\u{202e}fugg");
        assert_eq!(safe_lines("a\x1b[2Jb\r\n\tc"), "a\\u{1b}[2Jb\n\tc");
        assert_eq!(safe("▁naïve \"中文\" \\"), "▁naïve \"中文\" \\");
    }
}
