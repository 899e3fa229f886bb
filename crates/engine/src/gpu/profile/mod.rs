//! Times of a plan on the device: of each dispatch, by timestamps around passes of one dispatch each, or of the whole plan, by timestamps
//! around one pass.

mod table;

pub use table::{Row, Table, table};

use std::ops::Range;

use super::{GpuPlan, readback};
use crate::{error::EngineError, graph::Step};

/// Dispatches per query set: wgpu's largest holds two timestamps for each of these.
const DISPATCHES_PER_SET: usize = 2048;

/// One dispatch and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// The node of the graph that dispatched it.
    pub node: usize,
    /// Label of its pipeline.
    pub label: String,
    /// Time on the device in nanoseconds.
    pub nanoseconds: f64,
}

impl GpuPlan {
    /// Runs the graph once, each dispatch in its own pass between two timestamps; slower than [`Self::run`], which uses one pass. Empty if
    /// the device has no timestamps.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn profile(&self, step: &Step) -> Result<Vec<Timing>, EngineError> {
        if !self.times_dispatches() {
            self.run(step)?;
            return Ok(vec![]);
        }
        self.write_step(step)?;
        let mut timings = Vec::with_capacity(self.dispatches().len());
        for start in (0..self.dispatches().len()).step_by(DISPATCHES_PER_SET) {
            let end = (start + DISPATCHES_PER_SET).min(self.dispatches().len());
            let passes: Vec<_> = (start..end).map(|dispatch| dispatch..dispatch + 1).collect();
            let times = self.timed(&passes).await?;
            for (dispatch, nanoseconds) in self.dispatches()[start..end].iter().zip(times) {
                let label = dispatch.pipeline.label.clone();
                timings.push(Timing { node: dispatch.node, label, nanoseconds });
            }
        }
        Ok(timings)
    }

    /// Runs the graph once as [`Self::run`] does and returns the nanoseconds between two timestamps around it; `None` if the device has no
    /// timestamps.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn time(&self, step: &Step) -> Result<Option<f64>, EngineError> {
        if !self.times_dispatches() {
            self.run(step)?;
            return Ok(None);
        }
        self.write_step(step)?;
        let all = 0..self.dispatches().len();
        Ok(self.timed(&[all]).await?.first().copied())
    }

    /// Sums profiles of several runs by kernel; `best_bandwidth` is the device's measured read bandwidth
    /// ([`crate::suite::read_bandwidth`]).
    pub fn profile_table(
        &self,
        runs: &[Vec<Timing>],
        step: &Step,
        best_bandwidth: Option<f64>,
    ) -> Table {
        let bytes = |node: usize| {
            let cost = self.graph().node_cost(&self.graph().nodes()[node], step);
            cost.bytes_read + cost.bytes_written
        };
        table(runs, bytes, best_bandwidth)
    }

    /// Whether the device has timestamps, which [`Self::profile`] needs.
    pub fn times_dispatches(&self) -> bool {
        self.gpu().facts().timestamps
    }

    /// Runs ranges of dispatches, one pass each, and returns the nanoseconds of each pass.
    async fn timed(&self, passes: &[Range<usize>]) -> Result<Vec<f64>, EngineError> {
        let gpu = self.gpu();
        let count = 2 * u32::try_from(passes.len()).expect("a query set is small");
        let queries = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("profile"),
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let bytes = u64::from(count) * u64::from(wgpu::QUERY_SIZE);
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let ticks = gpu.buffer("profile", bytes, usage).await?;
        let mut encoder =
            gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (i, dispatches) in (0u32..).zip(passes) {
            let dispatches = &self.dispatches()[dispatches.clone()];
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: dispatches.first().map(|dispatch| dispatch.pipeline.label.as_str()),
                timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                    query_set: &queries,
                    beginning_of_pass_write_index: Some(2 * i),
                    end_of_pass_write_index: Some(2 * i + 1),
                }),
            });
            dispatches.iter().for_each(|dispatch| dispatch.encode(&mut pass));
        }
        encoder.resolve_query_set(&queries, 0..count, &ticks, 0);
        gpu.queue.submit([encoder.finish()]);
        let bytes = readback::read(gpu, &ticks, bytes).await?;
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
        let period = f64::from(gpu.queue.get_timestamp_period());
        let nanoseconds = |pair: &[u64]| pair[1].saturating_sub(pair[0]) as f64 * period;
        Ok(ticks.chunks_exact(2).map(nanoseconds).collect())
    }
}
