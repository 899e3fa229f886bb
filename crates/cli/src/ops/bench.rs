//! `rullama ops bench`

use std::time::Instant;

use anyhow::{Result, bail};
use rullama_engine::suite::{Case, Measured, bench as measure, most_workgroups, read_bandwidth};
use serde_json::{Value, json};

use super::BenchArgs;
use crate::output::{print, print_json, table};

/// Times of one case on one GPU at one feature level.
struct Row {
    gpu: String,
    level: &'static str,
    case: String,
    measured: Measured,
    /// Bandwidth of a plain read, in bytes per second.
    read: f64,
}

pub(super) async fn bench(args: &BenchArgs) -> Result<()> {
    let cases = args.ops.cases(|case| case.bench || args.all)?;
    let start = Instant::now();
    let clock = || start.elapsed();
    let mut rows = Vec::new();
    for gpu in args.ops.gpus()? {
        let read = read_bandwidth(&gpu, &clock).await?;
        // Only the device's own feature level, unless another one is selected.
        let levels = args.ops.levels(&gpu)?.into_iter().take(1);
        for (level, device) in levels {
            // A software GPU would take minutes for the largest cases.
            let fits = |case: &&Case| case.workgroups(device.facts()) <= most_workgroups(&gpu);
            for case in cases.iter().filter(fits) {
                for measured in measure(case, &device, &clock).await? {
                    let case = format!("{} {}", case.op, case.name);
                    rows.push(Row { gpu: gpu.name().into(), level, case, measured, read });
                }
            }
        }
    }
    if rows.is_empty() {
        bail!("every matching case is too large for a software GPU; try `--all`");
    }
    if args.ops.json {
        return print_json(&rows.iter().map(as_json).collect::<Vec<_>>());
    }
    let mut text = String::new();
    for group in rows.chunk_by(|a, b| a.gpu == b.gpu) {
        let (gpu, read) = (&group[0].gpu, group[0].read / 1e9);
        text.push_str(&format!("{gpu}: a plain read moves {read:.1} GB/s\n"));
        text.push_str(&as_table(group));
    }
    print(&text)
}

fn as_json(row: &Row) -> Value {
    let Row { gpu, level, case, measured, read } = row;
    json!({
        "gpu": gpu,
        "feature_level": level,
        "case": case,
        "op": measured.op,
        "kernels": measured.kernels,
        "dispatches": measured.dispatches,
        "nanoseconds": measured.nanoseconds,
        "bytes_per_second": measured.bandwidth(),
        "read_bytes_per_second": read,
        "operations_per_second": measured.speed(),
    })
}

fn as_table(rows: &[Row]) -> String {
    let head = ["CASE", "OPERATION", "µs", "GB/s", "OF READ", "GFLOP/s", "DISPATCHES", "KERNEL"];
    let mut cells = vec![head.map(String::from).to_vec()];
    for Row { case, measured, read, .. } in rows {
        let more = if measured.kernels.len() > 1 { " …" } else { "" };
        cells.push(vec![
            case.clone(),
            measured.op.into(),
            format!("{:.1}", measured.nanoseconds / 1e3),
            format!("{:.1}", measured.bandwidth() / 1e9),
            format!("{:.0} %", measured.bandwidth() / read * 100.0),
            format!("{:.1}", measured.speed() / 1e9),
            measured.dispatches.to_string(),
            measured.kernels.first().map_or_else(String::new, |kernel| format!("{kernel}{more}")),
        ]);
    }
    table(&cells)
}
