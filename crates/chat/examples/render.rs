//! Renders conversations given as JSON lines; one JSON object per line out.
//!
//! Without arguments it prints `{"small": …, "large": …}`, with the path of a template `{"text": …}` as that template
//! has it, and `{"error": …}` for what cannot be rendered. `tools/chat-cases` compares it with the original templates.

use std::io::{BufRead, Write};

use rullama_chat::{ChatError, Conversation, Family, Limits, render, render_template};
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let template = std::env::args().nth(1).map(std::fs::read_to_string).transpose()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let rendered = rendered(&line?, template.as_deref())
            .unwrap_or_else(|e| json!({ "error": e.to_string() }));
        writeln!(out, "{rendered}")?;
    }
    out.flush()
}

fn rendered(line: &str, template: Option<&str>) -> Result<Value, ChatError> {
    let conversation = Conversation::from_json(line)?;
    if let Some(template) = template {
        return Ok(
            json!({ "text": render_template(template, &conversation, &Limits::default())?.text() }),
        );
    }
    let small = render(&conversation, Family::Small)?.text();
    let large = render(&conversation, Family::Large)?.text();
    Ok(json!({ "small": small, "large": large }))
}
