//! Renders conversations given as JSON lines and prints one JSON object per line.
//!
//! A line is `{"small": …, "large": …}`, or `{"error": …}` for a conversation that cannot be rendered. `tools/chat-cases`
//! compares the output with the original templates.

use std::io::{BufRead, Write};

use rullama_chat::{ChatError, Conversation, Family, render};
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let rendered = rendered(&line?).unwrap_or_else(|e| json!({ "error": e.to_string() }));
        writeln!(out, "{rendered}")?;
    }
    out.flush()
}

fn rendered(line: &str) -> Result<Value, ChatError> {
    let conversation = Conversation::from_json(line)?;
    let small = render(&conversation, Family::Small)?.text();
    let large = render(&conversation, Family::Large)?.text();
    Ok(json!({ "small": small, "large": large }))
}
