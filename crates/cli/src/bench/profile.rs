//! Kernel times, compared with the bandwidth of a plain read of the device's memory.

use std::time::Instant;

use anyhow::Result;
use pollster::block_on;
use rullama_engine::{executor::Device, gpu::profile::Table, suite::read_bandwidth};
use rullama_runtime::session::{DeviceSampling, DraftOptions};

use super::measure::{Bench, CHUNK};

/// Tokens generated with drafts before a round is profiled.
const WARM_UP: usize = 16;

/// The kernels of one kind of pass.
pub(super) struct Profile {
    /// The kind of pass.
    pub(super) run: String,
    pub(super) table: Table,
}

/// Kernels of a decode step and of a prefill pass. Empty on the CPU and on GPUs without timestamps.
pub(super) fn profile(bench: &mut Bench, draft: Option<DraftOptions>) -> Result<Vec<Profile>> {
    let Device::Gpu(gpu) = bench.session.model().device().clone() else { return Ok(Vec::new()) };
    let start = Instant::now();
    let best = block_on(read_bandwidth(&gpu, &|| start.elapsed()))?;
    let mut profiles = Vec::new();
    let mut add = |run: String, table: Option<Table>| {
        profiles.extend(
            table
                .map(|table| Profile { run, table: Table { best_bandwidth: Some(best), ..table } }),
        );
    };
    bench.fill(1)?;
    let table = block_on(bench.session.profile(DeviceSampling::Greedy))?;
    add("decode, one token".into(), table);
    let tokens = bench.max_tokens().min(CHUNK);
    bench.session.rewind(0);
    bench.fill(1)?;
    bench.extend(tokens - 1)?;
    add(format!("prefill, {tokens} tokens"), block_on(bench.session.profile_prompt(tokens))?);
    if let Some(draft) = draft {
        bench.fill(1)?;
        bench.session.draft(Some(draft))?;
        for _ in 0..WARM_UP {
            block_on(bench.session.next(DeviceSampling::Greedy))?;
        }
        let tables = block_on(bench.session.profile_drafts())?;
        bench.session.draft(None)?;
        let (drafting, verification) = tables.unzip();
        add("drafting, one round".into(), drafting);
        add("verification, one round".into(), verification);
    }
    Ok(profiles)
}
