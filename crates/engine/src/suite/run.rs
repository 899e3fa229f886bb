//! Runs cases on a device, for the tests, the program and a browser page.

use super::{Case, Failure, check_gpu, lesser};
use crate::gpu::Gpu;

/// The outcome of a case.
#[derive(Debug)]
pub enum Verdict {
    /// Passed.
    Passed,
    /// Not run: too large for a slow device.
    Skipped {
        /// Workgroups it would have dispatched.
        workgroups: u64,
    },
    /// Failed.
    Failed(Failure),
}

/// Maximum workgroups of a case on a device. SwiftShader takes minutes for tens of thousands of workgroups with barriers; lavapipe does not.
pub fn most_workgroups(gpu: &Gpu) -> u64 {
    if gpu.is_software() && !gpu.name().contains("llvmpipe") { 10_000 } else { u64::MAX }
}

/// Runs a case on a device, unless it is too large for it.
pub async fn run(case: &Case, gpu: &Gpu) -> Verdict {
    let workgroups = case.workgroups(gpu.facts());
    if workgroups > most_workgroups(gpu) {
        return Verdict::Skipped { workgroups };
    }
    match check_gpu(case, gpu).await {
        Ok(()) => Verdict::Passed,
        Err(failure) => Verdict::Failed(failure),
    }
}

/// A device at all feature levels it can emulate, with their names.
pub fn feature_levels(gpu: &Gpu) -> Vec<(&'static str, Gpu)> {
    lesser(gpu.facts()).into_iter().map(|(name, facts)| (name, gpu.emulating(facts))).collect()
}
