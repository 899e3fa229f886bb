//! The results as text and JSON.

use std::{collections::BTreeMap, time::Duration};

use rullama_engine::{gpu::profile::Row, graph::Cost};
use rullama_runtime::model::CacheType;
use serde_json::{Value, json};

use super::{agreement::Agreement, growth::Growth, measure::Measured, profile::Profile};
use crate::{
    memory,
    output::{bytes, safe, table},
};

/// Bytes read back per step: one token id.
const BYTES_BACK: u64 = 4;

/// Everything but the tests.
pub(super) struct Facts<'a> {
    pub(super) model: &'a str,
    pub(super) adapter: String,
    pub(super) cache: CacheType,
    pub(super) context: usize,
    /// Constants of kernel selection that `rullama tune` changed.
    pub(super) tuning: BTreeMap<String, u32>,
    pub(super) load: Duration,
    /// Times to first token, cold and warm.
    pub(super) first: (Duration, Duration),
    /// Host time to queue a decode step, and the number of steps in flight; `None` if steps are not queued.
    pub(super) queueing: Option<(Duration, usize)>,
    pub(super) gpu_bytes: u64,
    pub(super) table_on_gpu: bool,
    /// Number of tokens whose logits are bit-identical in batched verification, and number of tokens compared.
    pub(super) bit_identical: Option<(usize, usize)>,
    pub(super) growth: Option<Growth>,
    pub(super) agreement: Vec<Agreement>,
}

pub(super) fn as_json(facts: &Facts<'_>, measured: &[Measured], profiles: &[Profile]) -> Value {
    json!({
        "model": facts.model,
        "adapter": facts.adapter,
        "cache": cache_name(facts.cache),
        "context": facts.context,
        "tuning": facts.tuning,
        "load_seconds": facts.load.as_secs_f64(),
        "first_token_cold_seconds": facts.first.0.as_secs_f64(),
        "first_token_warm_seconds": facts.first.1.as_secs_f64(),
        "queue_seconds": facts.queueing.map(|(time, _)| time.as_secs_f64()),
        "steps_ahead": facts.queueing.map(|(_, in_flight)| in_flight),
        "gpu_bytes": facts.gpu_bytes,
        "host_bytes": memory::own(),
        "mapped_bytes": memory::mapped(),
        "table_on_gpu": facts.table_on_gpu,
        "tests": measured.iter().map(test_json).collect::<Vec<_>>(),
        "checked_alike": facts.bit_identical.map(|(same, of)| json!({ "same": same, "of": of })),
        "growth": facts.growth.as_ref().map(Growth::json),
        "agreement": facts.agreement.iter().map(agreement_json).collect::<Vec<_>>(),
        "profiles": profiles.iter().map(profile_json).collect::<Vec<_>>(),
    })
}

fn agreement_json(agreement: &Agreement) -> Value {
    json!({ "way": agreement.way, "same": agreement.same, "of": agreement.of })
}

fn test_json(measured: &Measured) -> Value {
    let (mean, deviation) = measured.speed();
    json!({
        "test": measured.test.name(),
        "kind": if measured.test.prefill { "prefill" } else { "decode" },
        "tokens": measured.test.tokens,
        "depth": measured.test.depth,
        "tokens_per_second": mean,
        "deviation": deviation,
        "seconds": measured.times.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
        "step": measured.cost.as_ref().map(step_json),
        "drafts": measured.drafts.as_ref().map(|(counts, gain)| json!({
            "drafted": counts.drafted, "accepted": counts.accepted, "rounds": counts.rounds, "gain": gain,
        })),
    })
}

/// Cost of one decode step.
fn step_json(cost: &Cost) -> Value {
    let Cost { dispatches, bytes_read, bytes_written, operations } = cost;
    json!({
        "dispatches": dispatches, "bytes_read": bytes_read, "bytes_written": bytes_written,
        "operations": operations, "submits": 1, "bytes_back": BYTES_BACK,
    })
}

pub(super) fn profile_json(profile: &Profile) -> Value {
    let kernel = |row: &Row| {
        json!({
            "kernel": row.label, "dispatches": row.dispatches, "nanoseconds": row.nanoseconds,
            "bytes": row.bytes, "bytes_per_second": row.bandwidth(),
        })
    };
    json!({
        "run": profile.run,
        "read_bytes_per_second": profile.table.best_bandwidth,
        "kernels": profile.table.rows.iter().map(kernel).collect::<Vec<_>>(),
    })
}

pub(super) fn as_text(facts: &Facts<'_>, measured: &[Measured], profiles: &[Profile]) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let seconds = |time: Duration| format!("{:.3} s", time.as_secs_f64());
    let host = |bytes_of: Option<u64>| bytes_of.map_or_else(|| "unknown".into(), bytes);
    let table_place = if facts.table_on_gpu { ", per-layer table included" } else { "" };
    let mut rows = vec![
        row("model", safe(facts.model)),
        row("adapter", safe(&facts.adapter)),
        row("context", format!("{} tokens, {} caches", facts.context, cache_name(facts.cache))),
        row("load", seconds(facts.load)),
        row(
            "first token",
            format!("{} cold, {} warm", seconds(facts.first.0), seconds(facts.first.1)),
        ),
        row("GPU memory", bytes(facts.gpu_bytes) + table_place),
        row(
            "host memory",
            format!("{}, and {} of the mapped file", host(memory::own()), host(memory::mapped())),
        ),
    ];
    if !facts.tuning.is_empty() {
        let constants = facts.tuning.iter().map(|(name, value)| format!("{name} {value}"));
        rows.push(row("tuning", constants.collect::<Vec<_>>().join(", ")));
    }
    rows.extend(facts.queueing.map(|(time, in_flight)| {
        let time = time.as_micros();
        row("host time", format!("{time} µs to queue a token, {in_flight} in flight"))
    }));
    let mut text = table(&rows);
    text.push('\n');
    text.push_str(&test_table(measured));
    text.extend(facts.bit_identical.map(|(same, of)| {
        format!(
            "batched and single-token verification: {same} of {of} tokens have bit-identical logits\n"
        )
    }));
    text.extend(facts.growth.as_ref().map(Growth::text));
    if !facts.agreement.is_empty() {
        text.push_str(&agreement_table(&facts.agreement));
    }
    for Profile { run, table } in profiles {
        text.push_str(&format!("\n{run}\n{table}"));
    }
    text
}

fn agreement_table(agreement: &[Agreement]) -> String {
    let mut rows =
        vec![["AGREEMENT WITH THE CPU (DEMO MODEL)", "SAME TOKENS"].map(String::from).to_vec()];
    rows.extend(agreement.iter().map(|Agreement { way, same, of }| {
        let share = 100.0 * *same as f64 / (*of).max(1) as f64;
        vec![(*way).to_owned(), format!("{same} of {of}, {share:.1} %")]
    }));
    format!("\n{}", table(&rows))
}

fn test_table(measured: &[Measured]) -> String {
    let mut rows = vec![["TEST", "TOKENS/S", "PER TOKEN"].map(String::from).to_vec()];
    for measured in measured {
        let (mean, deviation) = measured.speed();
        let name = measured.test.name();
        let mut row = vec![name.clone(), format!("{mean:.2} ± {deviation:.2}")];
        if let Some((counts, gain)) = &measured.drafts {
            let share = 100.0 * counts.accepted as f64 / counts.drafted.max(1) as f64;
            let each = counts.drafted as f64 / counts.rounds.max(1) as f64;
            row[0] = format!("{name} drafted");
            row.push(format!(
                "{gain:.2} × as fast, {share:.0} % accepted of {each:.1} drafts per pass"
            ));
            rows.push(row);
            continue;
        }
        row.extend(measured.cost.as_ref().map(|cost| {
            let read = bytes(cost.bytes_read);
            format!("{} dispatches, {read} read, {BYTES_BACK} bytes back", cost.dispatches)
        }));
        rows.push(row);
    }
    table(&rows)
}

fn cache_name(cache: CacheType) -> &'static str {
    match cache {
        CacheType::F32 => "f32",
        CacheType::F16 => "f16",
        CacheType::Q8 => "q8",
    }
}
