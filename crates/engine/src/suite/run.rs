//! Running cases on a device for those that report: the tests, the program, a page.

use super::{Case, Failure, check_gpu, lesser};
use crate::gpu::Gpu;

/// How a case came out.
#[derive(Debug)]
pub enum Verdict {
    /// As it should.
    Passed,
    /// It was not run: too large for a slow device.
    Skipped {
        /// Workgroups it would have dispatched.
        workgroups: u64,
    },
    /// It did not.
    Failed(Failure),
}

/// The most workgroups a case may dispatch on a device. SwiftShader takes minutes for tens of thousands with barriers in
/// them; lavapipe does not.
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

/// A device as itself and as the lesser ones it can play, with the names of the roles.
pub fn plays(gpu: &Gpu) -> Vec<(&'static str, Gpu)> {
    lesser(gpu.facts()).into_iter().map(|(name, facts)| (name, gpu.playing(facts))).collect()
}
