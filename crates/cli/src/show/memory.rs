//! Estimated memory on the GPU and on the host, for supported models.

use rullama::Location;
use rullama_gguf::Gguf;
use rullama_models::{Catalog, decoder::Config};
use rullama_runtime::{
    MediaEncoders,
    model::{LoadOptions, MemoryUse, ModelKind},
};
use rullama_store::Layer;
use serde_json::{Value, json};

use crate::{args::ShowArgs, output::bytes};

/// The estimate for a context, with f16 caches; `None` for files that are not a complete Gemma 4.
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

/// Bytes of embedding models, diffusion models and drafters: weights, caches, work buffers.
fn related(gguf: &Gguf, args: &ShowArgs) -> Option<(u64, Option<u64>, u64)> {
    let kind = ModelKind::of(gguf);
    if kind == ModelKind::Decoder {
        return None;
    }
    let options = LoadOptions { context: args.ctx, ..LoadOptions::default() };
    let MemoryUse { weights, caches, work, .. } = MemoryUse::of_file(gguf, &options).ok()?;
    // Only some of them have their own caches.
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

/// Bytes of a decoder's extras: towers inside its file or in a projector layer, and its drafter.
#[derive(Default)]
struct Extras {
    towers: u64,
    drafter: u64,
}

impl Extras {
    /// Unreadable files count as zero: the model works without them.
    fn of(location: &Location, gguf: &Gguf) -> Self {
        let inside = MediaEncoders::memory_of_file(gguf).unwrap_or(0);
        let Location::Store(files) = location else { return Self { towers: inside, drafter: 0 } };
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

pub(super) fn rows(location: &Location, gguf: &Gguf, args: &ShowArgs) -> Option<Vec<Vec<String>>> {
    if let Some(rows) = related_rows(gguf, args) {
        return Some(rows);
    }
    let (memory, extras) = (estimate(gguf, args)?, Extras::of(location, gguf));
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![row("weights", bytes(memory.weights))];
    if memory.table > 0 {
        rows.push(row("per-layer table", bytes(memory.table) + ", on the GPU or in the file"));
    }
    rows.push(row("caches", format!("{} for {} tokens", bytes(memory.caches), memory.context)));
    rows.push(row("work buffers", bytes(memory.work)));
    if extras.drafter > 0 {
        rows.push(row("drafter", bytes(extras.drafter)));
    }
    if extras.towers > 0 {
        let when = ", loaded for the first image or audio";
        rows.push(row("encoders", bytes(extras.towers) + when));
    }
    let gpu = |table| bytes(memory.gpu(table) + extras.sum());
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

pub(super) fn json(location: &Location, gguf: &Gguf, args: &ShowArgs) -> Option<Value> {
    if let Some((weights, caches, work)) = related(gguf, args) {
        let gpu = weights + caches.unwrap_or(0) + work;
        return Some(json!({ "weights": weights, "caches": caches, "work": work, "gpu": gpu }));
    }
    let (memory, extras) = (estimate(gguf, args)?, Extras::of(location, gguf));
    Some(json!({
        "weights": memory.weights,
        "table": memory.table,
        "caches": memory.caches,
        "work": memory.work,
        "context": memory.context,
        "towers": extras.towers,
        "drafter": extras.drafter,
        "gpu": memory.gpu(true) + extras.sum(),
        "gpu_without_table": memory.gpu(false) + extras.sum(),
        "host": memory.host(false),
        "host_with_table": memory.host(true),
        "host_experts": memory.host_experts,
    }))
}
