//! Times a case: real shapes, weights filled quickly, timestamps around each dispatch if the device has them.

use std::{collections::HashMap, time::Duration};

use super::{Case, check::named, data};
use crate::{
    error::EngineError,
    gpu::{Gpu, GpuPlan, Timing, Weights},
    graph::{Cost, Graph, Step, Value},
};

/// The caller's clock: libraries have none, and browsers have another.
pub type Clock<'a> = dyn Fn() -> Duration + 'a;

/// Time until a device that idled while weights were generated runs at full clock rate.
const WARM_UP: Duration = Duration::from_millis(200);
/// Time for which a case is measured, about.
const MEASURED_TIME: Duration = Duration::from_millis(400);
/// Maximum runs of a case; the minimum is three.
const MAX_RUNS: usize = 50;

/// The measurement of one operation of a case.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The operation's folder.
    pub op: &'static str,
    /// Labels of its pipelines, each once.
    pub kernels: Vec<String>,
    /// Dispatches per run.
    pub dispatches: usize,
    /// Median time of a run on the device, in nanoseconds.
    pub nanoseconds: f64,
    /// Bytes moved and operations.
    pub cost: Cost,
}

impl Measured {
    /// Bytes moved per second.
    pub fn bandwidth(&self) -> f64 {
        (self.cost.bytes_read + self.cost.bytes_written) as f64 / self.nanoseconds * 1e9
    }

    /// Operations per second.
    pub fn speed(&self) -> f64 {
        self.cost.operations as f64 / self.nanoseconds * 1e9
    }
}

/// Times a case on a device: one entry per operation of its graph. Without timestamps there is one entry for the whole graph, by the caller's
/// clock, which includes the round trip to the device.
///
/// # Errors
/// If the device fails or has no memory for the case.
pub async fn bench(
    case: &Case,
    gpu: &Gpu,
    clock: &Clock<'_>,
) -> Result<Vec<Measured>, EngineError> {
    let mut graph = Graph::new();
    let results = (case.build)(&mut graph);
    results.iter().for_each(|value| graph.keep(*value));
    let weights = fill(&graph, gpu).await?;
    let plan = GpuPlan::new(graph, &weights, &mut HashMap::new()).await?;
    for (_, name, ty) in named(plan.graph()) {
        plan.write_data(name, ty, &case.data(name, ty));
    }
    match case.links {
        None => {
            let runs = time(&plan, &case.step, results[0], clock).await?;
            Ok(summary(case, &plan, &runs))
        }
        Some(links) => {
            let times = time_chain(&plan, &case.step, results[0], clock).await?;
            Ok(vec![one_link(case, &plan, links, times)])
        }
    }
}

/// Weights on the device; large ones repeat a few rows, because quantising all of them would take minutes.
async fn fill(graph: &Graph, gpu: &Gpu) -> Result<Weights, EngineError> {
    let mut weights = Weights::new(gpu);
    for (_, info) in graph.values() {
        let Some(name) = &info.origin.weight_name() else { continue };
        let weight = data::rows(name, &info.ty, 64);
        weights.reserve(name, weight.dtype, &info.ty.shape).await?;
        let (known, all) = (weight.shape.rows(), info.ty.shape.rows());
        for first in (0..all).step_by(known.max(1)) {
            let rows = known.min(all - first);
            let bytes = &weight.parts[0];
            weights.write(name, first, &bytes[..bytes.len() / known * rows])?;
        }
    }
    Ok(weights)
}

/// Runs a plan for the measured time; each run gives the times of its dispatches, or one for all of them.
pub(super) async fn time(
    plan: &GpuPlan,
    step: &Step,
    result: Value,
    clock: &Clock<'_>,
) -> Result<Vec<Vec<Timing>>, EngineError> {
    // The first run compiles and allocates.
    let start = clock();
    while clock() - start < WARM_UP {
        plan.run(step)?;
        plan.read(result).await?;
    }
    let mut runs = Vec::new();
    let start = clock();
    while runs.len() < 3 || (runs.len() < MAX_RUNS && clock() - start < MEASURED_TIME) {
        let before = clock();
        let timings = plan.profile(step).await?;
        if timings.is_empty() {
            plan.read(result).await?;
            let nanoseconds = (clock() - before).as_nanos() as f64;
            runs.push(vec![Timing { node: 0, label: "by the clock".into(), nanoseconds }]);
        } else {
            runs.push(timings);
        }
    }
    Ok(runs)
}

/// Runs a plan as a whole for the measured time: nanoseconds of each run.
async fn time_chain(
    plan: &GpuPlan,
    step: &Step,
    result: Value,
    clock: &Clock<'_>,
) -> Result<Vec<f64>, EngineError> {
    let start = clock();
    while clock() - start < WARM_UP {
        plan.run(step)?;
        plan.read(result).await?;
    }
    let mut times = Vec::new();
    let start = clock();
    while times.len() < 3 || (times.len() < MAX_RUNS && clock() - start < MEASURED_TIME) {
        let before = clock();
        let on_device = plan.time(step).await?;
        plan.read(result).await?;
        times.push(on_device.unwrap_or_else(|| (clock() - before).as_nanos() as f64));
    }
    Ok(times)
}

/// The average link of a chain.
fn one_link(case: &Case, plan: &GpuPlan, links: usize, times: Vec<f64>) -> Measured {
    let cost = plan.cost(&case.step);
    let share = |whole: u64| whole / links as u64;
    let mut kernels = plan.kernels();
    kernels.dedup();
    kernels.truncate(share(cost.dispatches) as usize);
    Measured {
        op: case.op,
        kernels,
        dispatches: share(cost.dispatches) as usize,
        nanoseconds: median(times) / links as f64,
        cost: Cost {
            dispatches: share(cost.dispatches),
            bytes_read: share(cost.bytes_read),
            bytes_written: share(cost.bytes_written),
            operations: share(cost.operations),
        },
    }
}

/// Medians by operation.
fn summary(case: &Case, plan: &GpuPlan, runs: &[Vec<Timing>]) -> Vec<Measured> {
    let by_clock = !plan.times_dispatches();
    let nodes = plan.graph().nodes();
    let timed = runs[0].iter().map(|timing| timing.node).collect::<std::collections::BTreeSet<_>>();
    let measured = timed.into_iter().map(|node| {
        let of_node = |timing: &&Timing| timing.node == node;
        let dispatches: Vec<&Timing> = runs[0].iter().filter(of_node).collect();
        let mut kernels: Vec<String> =
            dispatches.iter().map(|timing| timing.label.clone()).collect();
        kernels.dedup();
        let times = runs.iter().map(|run| run.iter().filter(of_node).map(|t| t.nanoseconds).sum());
        let cost = if by_clock {
            plan.cost(&case.step)
        } else {
            plan.graph().node_cost(&nodes[node], &case.step)
        };
        Measured {
            op: if by_clock { case.op } else { nodes[node].op.name() },
            kernels,
            dispatches: if by_clock {
                plan.cost(&case.step).dispatches as usize
            } else {
                dispatches.len()
            },
            nanoseconds: median(times.collect()),
            cost,
        }
    });
    measured.collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
