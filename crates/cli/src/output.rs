//! Printing text, tables and JSON.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// The reader of standard output closed it (`| head`): the program ends without a message and with success.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl std::fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for OutputClosed {}

/// Writes to standard output. If it is closed, this is an error instead of `exit`, so that the GPU is released first.
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

/// Prints a note that is not an error to standard error.
pub(crate) fn note(text: &str) {
    // Ignored if standard error is closed.
    let _ = writeln!(io::stderr(), "rullama: {}", safe(text));
}

/// Prints text to standard error unescaped.
pub(crate) fn note_block(text: &str) {
    let _ = write!(io::stderr(), "{text}");
}

/// Maximum column width; a longer cell does not widen the other rows.
const MAX_WIDTH: usize = 100;

/// A table with aligned columns.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let width = |cell: &String| cell.chars().count();
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = MAX_WIDTH.min(width(cell).max(*widest));
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

/// Escapes untrusted text for a terminal: control characters and marks of writing direction.
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

/// Escapes a model's output for a terminal: like [`safe`], but keeps line breaks and tabs.
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

/// Marks of writing direction, which can make a name look like another, and unusual line breaks.
fn is_layout(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A progress bar over bytes on standard error; hidden if it is not a terminal.
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
    fn control_characters_are_escaped() {
        assert_eq!(safe("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(safe("\u{9b}2J \u{202e}fugg"), "\\u{9b}2J \\u{202e}fugg");
        assert_eq!(safe_lines("a\x1b[2Jb\r\n\tc"), "a\\u{1b}[2Jb\n\tc");
        assert_eq!(safe("▁naïve \"中文\" \\"), "▁naïve \"中文\" \\");
    }
}
