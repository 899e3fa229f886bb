//! `cargo xtask tidy`: checks the invariants of the tree.

mod engine;
mod files;
mod layers;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::command::{output, say};

pub(crate) fn tidy() -> Result<()> {
    let metadata: Value = serde_json::from_str(&output(
        "cargo",
        &["metadata", "--format-version", "1", "--locked"],
    )?)?;
    let mut problems = Vec::new();
    layers::check(&metadata, &mut problems)?;
    files::check(&mut problems)?;
    engine::check(&mut problems)?;
    if problems.is_empty() {
        say("tidy: the tree is in order");
        return Ok(());
    }
    bail!("tidy found {} problem(s):\n  {}", problems.len(), problems.join("\n  "))
}

/// The packages of a `cargo metadata` document.
fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// A string field; empty if it is missing.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
