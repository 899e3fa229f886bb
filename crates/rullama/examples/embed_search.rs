//! Search by meaning: the lines of a file, best match first.
//!
//! ```sh
//! cargo run --release --example embed_search -- embeddinggemma notes.txt "where are my keys"
//! ```
#![expect(clippy::print_stdout, reason = "it is a program")]

use anyhow::Context;
use rullama::{Embedder, similarity};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().context("usage: embed_search MODEL FILE QUERY");
    let (model, path, query) = (next()?, next()?, next()?);
    let embedder = Embedder::open(&model)?;
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let query = embedder.embed_query(&query)?;
    let documents = embedder.embed_documents(&lines)?;
    let mut found: Vec<(f32, &str)> =
        documents.iter().map(|document| similarity(&query, document)).zip(lines).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (score, line) in found.iter().take(5) {
        println!("{score:.3}  {line}");
    }
    Ok(())
}
