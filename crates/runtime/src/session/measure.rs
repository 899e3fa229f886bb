//! Measurements for benchmarks.

use rullama_engine::{gpu::profile::Table, graph::Cost};
use rullama_models::decoder::PassOutput;

use super::{
    DeviceSampling, Session,
    steps::{output_of, step},
};
use crate::error::RuntimeError;

/// Passes averaged by a step profile.
const PROFILED_PASSES: usize = 5;

impl Session {
    /// Waits until the device has finished all queued work.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn synchronize(&self) -> Result<(), RuntimeError> {
        Ok(self.model.0.weights.flush().await?)
    }

    /// Queues a decode step after those in flight without waiting for it, to measure the host's work per token. Its token is not
    /// appended. False if the context is full.
    ///
    /// # Errors
    /// If there is no token, or the device fails.
    pub async fn queue_step(&mut self, sampling: DeviceSampling) -> Result<bool, RuntimeError> {
        if self.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        // Only steps of the token loop set `in_flight_sampling`.
        if self.in_flight_sampling.is_some() || self.in_flight.is_empty() {
            self.drop_in_flight();
            self.keep(self.tokens.len() - 1);
            self.prefill(&mut |_| true).await?;
        }
        let fits = self.filled + self.in_flight.len() < self.context;
        if fits {
            self.enqueue_step(sampling).await?;
        }
        Ok(fits)
    }

    /// Estimated cost of one decode step at the session's position.
    ///
    /// # Errors
    /// If the device has no space for the graph.
    pub async fn step_cost(&mut self, sampling: DeviceSampling) -> Result<Cost, RuntimeError> {
        let range = self.filled..self.filled + 1;
        let prepared = self.prepared(output_of(sampling), 1).await?;
        Ok(prepared.cost(&step(&range, 0)))
    }

    /// Profiles one decode step with timestamps around every dispatch. Its token is not appended. `None` on the CPU, or if the host
    /// computes experts.
    ///
    /// # Errors
    /// If there is no token, or the device fails.
    pub async fn profile(
        &mut self,
        sampling: DeviceSampling,
    ) -> Result<Option<Table>, RuntimeError> {
        self.drop_in_flight();
        if self.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        self.prefill(&mut |_| true).await?;
        // The queued step leaves its inputs in place, so that the profiled pass reads the same.
        self.enqueue_step(sampling).await?;
        self.drop_in_flight();
        let range = self.filled..self.filled + 1;
        let prepared = self.prepared(output_of(sampling), 1).await?;
        let Some(plan) = prepared.whole_on_gpu() else { return Ok(None) };
        let step = step(&range, 0);
        let mut runs = Vec::with_capacity(PROFILED_PASSES);
        for _ in 0..PROFILED_PASSES {
            runs.push(plan.profile(&step).await?);
        }
        Ok(Some(plan.profile_table(&runs, &step, None)))
    }

    /// Profiles a prefill pass over the next `tokens` tokens with timestamps around every dispatch. The tokens do not count as cached.
    /// `None` on the CPU.
    ///
    /// # Errors
    /// If there are no such tokens, or the device fails.
    pub async fn profile_prompt(&mut self, tokens: usize) -> Result<Option<Table>, RuntimeError> {
        self.drop_in_flight();
        let range = self.filled..self.filled + tokens;
        if range.is_empty() || range.end > self.tokens.len() {
            return Err(RuntimeError::EmptyPrompt);
        }
        self.write_tokens(PassOutput::Caches, tokens, range.clone()).await?;
        self.written = self.written.max(range.end);
        let prepared = self.prepared(PassOutput::Caches, tokens).await?;
        let Some(plan) = prepared.whole_on_gpu() else { return Ok(None) };
        let step = step(&range, 0);
        // The first pass warms up the GPU clocks.
        plan.profile(&step).await?;
        let run = plan.profile(&step).await?;
        Ok(Some(plan.profile_table(&[run], &step, None)))
    }
}
