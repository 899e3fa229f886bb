//! `rullama adapter show`.

use std::collections::BTreeMap;

use anyhow::Result;
use rullama_adapter::Adapter;
use rullama_runtime::adapters::fit_to;
use serde_json::json;

use super::ShowArgs;
use crate::{
    adapters::read,
    locate::Stores,
    output::{print, print_json, safe, table},
};

pub(super) fn show(stores: &Stores, args: &ShowArgs) -> Result<()> {
    let adapter = read(&args.path)?;
    let mut without_effect = Vec::new();
    if let Some(model) = &args.model {
        let (_, gguf) = stores.open(model)?;
        without_effect = fit_to(&gguf, &adapter)?.without_effect;
    }
    if args.json {
        return print_json(&json!({
            "format": adapter.format.name(),
            "architecture": adapter.architecture,
            "base_model": adapter.base_model,
            "parameters": adapter.parameters(),
            "ranks": ranks(&adapter),
            "tensors": adapter.pairs.iter().map(|pair| json!({
                "name": pair.tensor,
                "experts": pair.experts,
                "rank": pair.rank,
                "rows": pair.rows,
                "columns": pair.columns,
                "scale": pair.scale,
            })).collect::<Vec<_>>(),
            "ignored": adapter.ignored,
            "without_effect": without_effect,
        }));
    }
    let mut rows = vec![vec!["format".into(), adapter.format.name().into()]];
    let mut row = |name: &str, value: String| rows.push(vec![name.into(), value]);
    if let Some(architecture) = &adapter.architecture {
        row("architecture", safe(architecture));
    }
    if let Some(base) = &adapter.base_model {
        row("base model", safe(base));
    }
    row("rank", ranks(&adapter).iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
    row("scale", scales(&adapter));
    row("parameters", adapter.parameters().to_string());
    row("changes", kinds(&adapter));
    if !adapter.ignored.is_empty() {
        row("ignored", format!("{} tensors of encoders or norms", adapter.ignored.len()));
    }
    if let Some(model) = &args.model {
        row("fits", safe(model));
    }
    if !without_effect.is_empty() {
        row(
            "no effect",
            format!(
                "{} tensors of layers that reuse other layers' keys and values",
                without_effect.len()
            ),
        );
    }
    let mut text = table(&rows);
    if args.tensors {
        text.push('\n');
        text.push_str(&tensors(&adapter));
    }
    print(&text)
}

fn ranks(adapter: &Adapter) -> Vec<usize> {
    let mut ranks: Vec<usize> = adapter.pairs.iter().map(|pair| pair.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn scales(adapter: &Adapter) -> String {
    let mut scales: Vec<f32> = adapter.pairs.iter().map(|pair| pair.scale).collect();
    scales.sort_by(f32::total_cmp);
    scales.dedup();
    scales.iter().map(f32::to_string).collect::<Vec<_>>().join(", ")
}

/// Tensor names without layer numbers, each with its count.
fn kinds(adapter: &Adapter) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for pair in &adapter.pairs {
        let layer = pair.tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        let name = layer.map_or(pair.tensor.as_str(), |(_, name)| name);
        *kinds.entry(name.strip_suffix(".weight").unwrap_or(name)).or_default() += 1;
    }
    let kind = |(name, count): (&str, usize)| format!("{} × {count}", safe(name));
    kinds.into_iter().map(kind).collect::<Vec<_>>().join(", ")
}

fn tensors(adapter: &Adapter) -> String {
    let mut rows = vec![["TENSOR", "ROWS × COLUMNS", "RANK", "SCALE"].map(String::from).to_vec()];
    for pair in &adapter.pairs {
        let experts =
            if pair.experts > 1 { format!("{} × ", pair.experts) } else { String::new() };
        let shape = format!("{experts}{} × {}", pair.rows, pair.columns);
        rows.push(vec![safe(&pair.tensor), shape, pair.rank.to_string(), pair.scale.to_string()]);
    }
    table(&rows)
}
