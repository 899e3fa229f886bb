//! `rullama ops support`

use anyhow::{Result, bail};
use rullama_engine::{
    gpu::DeviceFacts,
    suite::{Support, support as supported},
};
use serde_json::{Value, json};

use super::OpsArgs;
use crate::output::{bytes, print, print_json, table};

pub(super) async fn support(args: &OpsArgs) -> Result<()> {
    let mut text = String::new();
    let mut list: Vec<Value> = Vec::new();
    for (index, gpu) in args.gpus()?.iter().enumerate() {
        let number = args.device.unwrap_or(index);
        for (level, device) in args.levels(gpu)? {
            let mut kernels = supported(device.facts());
            kernels.retain(|row| format!("{} {}", row.op, row.format).contains(&args.filter));
            if kernels.is_empty() {
                bail!("no operation or format matches `{}`", args.filter);
            }
            text.push_str(&format!("GPU {number}: {} (level: {level})\n", gpu.name()));
            text.push_str(&facts_table(device.facts()));
            text.push_str(&kernel_table(&kernels));
            text.push('\n');
            list.push(json!({
                "device": number,
                "gpu": gpu.name(),
                "feature_level": level,
                "facts": facts_json(device.facts()),
                "kernels": kernels.iter().map(kernel_json).collect::<Vec<_>>(),
            }));
        }
    }
    if args.json { print_json(&list) } else { print(&text) }
}

fn facts_table(facts: &DeviceFacts) -> String {
    let yes = |b: bool| if b { "yes" } else { "no" }.to_owned();
    let subgroups = facts
        .subgroups
        .map_or_else(|| "no".into(), |(least, most)| format!("{least} to {most} lanes"));
    let rows = [
        ("f16", yes(facts.f16)),
        ("subgroups", subgroups),
        ("timestamps", yes(facts.timestamps)),
        ("largest binding", bytes(facts.binding_bytes)),
        ("largest buffer", bytes(facts.buffer_bytes)),
        ("storage buffers", facts.storage_buffers.to_string()),
        ("workgroup", format!("{} lanes, {} bytes", facts.invocations, facts.workgroup_bytes)),
    ];
    table(&rows.map(|(name, value)| vec![format!("  {name}"), value]))
}

fn facts_json(facts: &DeviceFacts) -> Value {
    json!({
        "f16": facts.f16,
        "subgroups": facts.subgroups.map(|(least, most)| [least, most]),
        "timestamps": facts.timestamps,
        "binding_bytes": facts.binding_bytes,
        "buffer_bytes": facts.buffer_bytes,
        "storage_buffers": facts.storage_buffers,
        "invocations": facts.invocations,
        "workgroup_bytes": facts.workgroup_bytes,
    })
}

fn kernel_table(kernels: &[Support]) -> String {
    let mut rows = vec![["  OPERATION", "FORMAT", "KERNELS"].map(String::from).to_vec()];
    for row in kernels {
        let format = if row.format.is_empty() { "–" } else { &row.format };
        rows.push(vec![format!("  {}", row.op), format.into(), row.kernels.join("; ")]);
    }
    table(&rows)
}

fn kernel_json(row: &Support) -> Value {
    json!({ "op": row.op, "format": row.format, "kernels": row.kernels })
}
