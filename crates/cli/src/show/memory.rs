//! What a model would take on a GPU and on the host, for models that can run here.

use rullama::Location;
use rullama_gguf::Gguf;
use rullama_models::{Catalog, gemma4::Config};
use rullama_runtime::{
    MediaEncoders,
    model::{LoadOptions, MemoryUse, ModelKind},
};
use rullama_store::Layer;
use serde_json::{Value, json};

use crate::{args::ShowArgs, output::bytes};

/// The estimate for a context, with f16 caches; nothing for files that are no whole Gemma 4.
fn estimate(gguf: &Gguf, args: &ShowArgs) -> Option<MemoryUse> {
    let config = Config::of_file(gguf).ok()?;
    let catalog = Catalog::of_file(gguf, &config.expected()).ok()?;
    let options = LoadOptions {
        context: args.ctx.map(|tokens| tokens.max(1)),
        gpu_budget: args.gpu_memory,
        host_experts: args.host_experts,
        ..LoadOptions::default()
    };
    Some(MemoryUse::estimate(&config, &catalog, &options))
}

/// Bytes of related models: weights, caches with their context, and to work with.
fn related(gguf: &Gguf, args: &ShowArgs) -> Option<(u64, Option<u64>, u64)> {
    let kind = ModelKind::of(gguf);
    if kind == ModelKind::Decoder {
        return None;
    }
    let options = LoadOptions { context: args.ctx, ..LoadOptions::default() };
    let MemoryUse { weights, caches, work, .. } = MemoryUse::of_file(gguf, &options).ok()?;
    // Only some of them have caches of their own.
    Some((weights, kind.chats().then_some(caches), work))
}

fn related_rows(gguf: &Gguf, args: &ShowArgs) -> Option<Vec<Vec<String>>> {
    let (weights, caches, work) = related(gguf, args)?;
    let row = |name: &str, value: u64| vec![name.to_owned(), bytes(value)];
    let mut rows = vec![row("weights", weights)];
    rows.extend(caches.map(|caches| row("caches", caches)));
    rows.push(row("work buffers", work));
    rows.push(row("on the GPU", weights + caches.unwrap_or(0) + work));
    Some(rows)
}

/// Bytes of what comes with a decoder: towers inside its file or in a layer of their own, and its drafter.
#[derive(Default)]
struct Beside {
    towers: u64,
    drafter: u64,
}

impl Beside {
    /// What cannot be read takes nothing: the model answers without it.
    fn of(place: &Location, gguf: &Gguf) -> Self {
        let inside = MediaEncoders::memory_of_file(gguf).unwrap_or(0);
        let Location::Store(files) = place else { return Self { towers: inside, drafter: 0 } };
        let open = |layer: &Layer| Location::Path(layer.path.clone()).open().ok();
        let projectors = files.projectors.iter().filter_map(open);
        let projectors =
            projectors.filter_map(|file| MediaEncoders::memory_of_file(&file).ok()).sum();
        let drafter = files.draft.as_ref().and_then(open).and_then(|file| {
            Some(MemoryUse::of_file(&file, &LoadOptions::default()).ok()?.gpu(false))
        });
        Self {
            towers: if projectors > 0 { projectors } else { inside },
            drafter: drafter.unwrap_or(0),
        }
    }

    fn sum(&self) -> u64 {
        self.towers + self.drafter
    }
}

pub(super) fn rows(place: &Location, gguf: &Gguf, args: &ShowArgs) -> Option<Vec<Vec<String>>> {
    if let Some(rows) = related_rows(gguf, args) {
        return Some(rows);
    }
    let (memory, beside) = (estimate(gguf, args)?, Beside::of(place, gguf));
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![row("weights", bytes(memory.weights))];
    if memory.table > 0 {
        rows.push(row("per-layer table", bytes(memory.table) + ", on the GPU or in the file"));
    }
    rows.push(row("caches", format!("{} for {} tokens", bytes(memory.caches), memory.context)));
    rows.push(row("work buffers", bytes(memory.work)));
    if beside.drafter > 0 {
        rows.push(row("drafter", bytes(beside.drafter)));
    }
    if beside.towers > 0 {
        let when = ", loaded for the first image or audio";
        rows.push(row("encoders", bytes(beside.towers) + when));
    }
    let gpu = |table| bytes(memory.gpu(table) + beside.sum());
    let (all, without) = (gpu(true), gpu(false));
    let sum = if memory.table > 0 { format!("{all}, {without} without the table") } else { all };
    rows.push(row("on the GPU", sum));
    let (all, without) = (bytes(memory.host(true)), bytes(memory.host(false)));
    let sum = if memory.table > 0 { format!("{without}, {all} with the table") } else { without };
    let experts = match memory.host_experts {
        0 => String::new(),
        layers => format!(", experts of {layers} layers"),
    };
    rows.push(row("on the host", sum + &experts + ", as mapped pages of the file"));
    Some(rows)
}

pub(super) fn json(place: &Location, gguf: &Gguf, args: &ShowArgs) -> Option<Value> {
    if let Some((weights, caches, work)) = related(gguf, args) {
        let gpu = weights + caches.unwrap_or(0) + work;
        return Some(json!({ "weights": weights, "caches": caches, "work": work, "gpu": gpu }));
    }
    let (memory, beside) = (estimate(gguf, args)?, Beside::of(place, gguf));
    Some(json!({
        "weights": memory.weights,
        "table": memory.table,
        "caches": memory.caches,
        "work": memory.work,
        "context": memory.context,
        "towers": beside.towers,
        "drafter": beside.drafter,
        "gpu": memory.gpu(true) + beside.sum(),
        "gpu_without_table": memory.gpu(false) + beside.sum(),
        "host": memory.host(false),
        "host_with_table": memory.host(true),
        "host_experts": memory.host_experts,
    }))
}
