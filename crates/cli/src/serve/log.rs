//! Requests on standard error, a line each.

use std::sync::Arc;

use clap::ValueEnum;
use rullama_server::{Log, LogEntry};

use crate::output::{note, safe};

/// How requests are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// For people
    Text,
    /// A JSON object per line
    Json,
}

impl LogFormat {
    /// Writes lines of this kind.
    pub(super) fn log(self) -> Log {
        Arc::new(move |entry| {
            note(&match self {
                Self::Text => text(entry),
                Self::Json => serde_json::to_string(entry).unwrap_or_default(),
            });
        })
    }
}

fn text(entry: &LogEntry) -> String {
    let LogEntry { time, method, path, status, milliseconds, id, .. } = entry;
    let mut line = format!("{time} {status} {milliseconds} ms {method} {}", safe(path));
    if let Some(model) = &entry.model {
        line.push_str(&format!(" {}", safe(model)));
    }
    if let (Some(prompt), Some(reply)) = (entry.prompt_tokens, entry.completion_tokens) {
        let cached = entry.cached_tokens.unwrap_or(0);
        line.push_str(&format!(" {prompt} tokens ({cached} cached) + {reply}"));
    }
    if let Some(error) = &entry.error {
        line.push_str(&format!(" error: {}", safe(error)));
    }
    line + " " + id
}
