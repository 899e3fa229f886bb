//! `rullama list`: the models of Ollama's store.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use rullama_store::{Entry, Store, StoreError};
use serde_json::{Value, json};

use crate::{
    args::ListArgs,
    locate::{self, Stores},
    output::{bytes, print, print_json, safe, table},
};

pub(crate) fn list(stores: &Stores, args: &ListArgs) -> Result<()> {
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    for root in &stores.0.0 {
        match Store::open(root) {
            Ok(store) => {
                let listing = store.list();
                entries.extend(listing.entries);
                problems.extend(listing.unreadable);
            }
            Err(StoreError::NoStore { .. }) => {}
            Err(error) => problems.push(error),
        }
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
    if args.json {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let models: Vec<Value> = entries.iter().map(|entry| as_json(stores, entry)).collect();
        return print_json(&json!({ "models": models, "problems": problems }));
    }
    print(&as_table(stores, &entries, &problems))
}

/// What a model can do, from the headers of its files; nothing if they cannot be read.
fn capabilities(stores: &Stores, entry: &Entry) -> Vec<&'static str> {
    let opened = stores.open(&entry.name.full());
    opened.map(|(location, gguf)| locate::capabilities(&location, &gguf)).unwrap_or_default()
}

fn as_json(stores: &Stores, entry: &Entry) -> Value {
    let modified = entry.modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let mut value = json!({
        "name": entry.name.to_string(),
        "full_name": entry.name.full(),
        "modified_unix": modified.map(|since| since.as_secs()),
    });
    match &entry.summary {
        Ok(summary) => {
            value["id"] = json!(summary.id.hex());
            value["size"] = json!(summary.size);
            value["capabilities"] = json!(capabilities(stores, entry));
        }
        Err(problem) => value["problem"] = json!(problem.to_string()),
    }
    value
}

fn as_table(stores: &Stores, entries: &[Entry], problems: &[StoreError]) -> String {
    let mut text = String::new();
    if entries.is_empty() {
        text.push_str("No models found. Searched:\n");
        for root in &stores.0.0 {
            text.push_str(&format!("  {}\n", safe(&root.display().to_string())));
        }
        text.push_str("Pull one with `rullama pull gemma4:e2b`, point --store at a folder, or use the path or URL of a GGUF file.\n");
    } else {
        let head = ["NAME", "ID", "SIZE", "MODIFIED", "CAPABILITIES"].map(String::from).to_vec();
        let rows = entries.iter().map(|entry| row(stores, entry));
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        text.push_str(&table(&rows));
    }
    for problem in problems {
        text.push_str(&format!("problem: {}\n", safe(&problem.to_string())));
    }
    text
}

fn row(stores: &Stores, entry: &Entry) -> Vec<String> {
    let age = entry.modified.and_then(|time| time.elapsed().ok()).map_or_else(|| "–".into(), ago);
    match &entry.summary {
        Ok(summary) => {
            let can = capabilities(stores, entry).join(", ");
            vec![entry.name.to_string(), summary.id.short().into(), bytes(summary.size), age, can]
        }
        Err(problem) => {
            let problem = format!("problem: {}", safe(&problem.to_string()));
            vec![entry.name.to_string(), "–".into(), "–".into(), age, problem]
        }
    }
}

/// "3 days ago".
fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [
        (31_536_000, "year"),
        (2_592_000, "month"),
        (604_800, "week"),
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
    ];
    for (size, unit) in units {
        let count = seconds / size;
        if count > 0 {
            return format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" });
        }
    }
    "just now".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (seconds, text) in
            [(5, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (700_000, "1 week ago")]
        {
            assert_eq!(ago(Duration::from_secs(seconds)), text);
        }
    }
}
