//! What a model would take on a GPU, for models that can run here.

use rullama_gguf::Gguf;
use rullama_models::{Catalog, gemma4::Config};
use rullama_runtime::model::{LoadOptions, MemoryUse};
use serde_json::{Value, json};

use crate::output::bytes;

/// The estimate for a context, with f16 caches; nothing for files that are no whole Gemma 4.
fn estimate(gguf: &Gguf, context: Option<usize>) -> Option<MemoryUse> {
    let config = Config::of_file(gguf).ok()?;
    let catalog = Catalog::of_file(gguf, &config.expected()).ok()?;
    let options =
        LoadOptions { context: context.map(|tokens| tokens.max(1)), ..LoadOptions::default() };
    Some(MemoryUse::estimate(&config, &catalog, &options))
}

pub(super) fn rows(gguf: &Gguf, context: Option<usize>) -> Option<Vec<Vec<String>>> {
    let memory = estimate(gguf, context)?;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![row("weights", bytes(memory.weights))];
    if memory.table > 0 {
        rows.push(row("per-layer table", bytes(memory.table) + ", on the GPU or in the file"));
    }
    rows.push(row("caches", format!("{} for {} tokens", bytes(memory.caches), memory.context)));
    rows.push(row("to work with", bytes(memory.work)));
    let (all, without) = (bytes(memory.gpu(true)), bytes(memory.gpu(false)));
    let sum = if memory.table > 0 { format!("{all}, {without} without the table") } else { all };
    rows.push(row("on the GPU", sum));
    Some(rows)
}

pub(super) fn json(gguf: &Gguf, context: Option<usize>) -> Option<Value> {
    let memory = estimate(gguf, context)?;
    Some(json!({
        "weights": memory.weights,
        "table": memory.table,
        "caches": memory.caches,
        "work": memory.work,
        "context": memory.context,
        "gpu": memory.gpu(true),
        "gpu_without_table": memory.gpu(false),
    }))
}
