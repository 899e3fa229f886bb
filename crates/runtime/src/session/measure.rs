//! What benchmarks ask of a session beside its tokens.

use rullama_engine::{gpu::profile::Table, graph::Cost};
use rullama_models::gemma4::PassOutput;

use super::{
    DeviceSampling, Session,
    steps::{output_of, step},
};
use crate::error::RuntimeError;

/// Passes that a profile of a step is the mean of.
const PROFILED_PASSES: usize = 5;

impl Session {
    /// Waits until the device has done all that was queued.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn synchronize(&self) -> Result<(), RuntimeError> {
        Ok(self.model.0.weights.flush().await?)
    }

    /// Queues a step of the token loop after those under way and does not wait for it: what the host does for each token. Steps queued so
    /// count for nothing. False if there is no space for another.
    ///
    /// # Errors
    /// If there is no token, or the device fails.
    pub async fn queue_step(&mut self, sampling: DeviceSampling) -> Result<bool, RuntimeError> {
        if self.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        // Steps of the token loop itself have a sampling that they were queued for.
        if self.in_flight_sampling.is_some() || self.in_flight.is_empty() {
            self.drop_in_flight();
            self.keep(self.tokens.len() - 1);
            self.prefill(&mut |_| true).await?;
        }
        let has_room = self.filled + self.in_flight.len() < self.context;
        if has_room {
            self.enqueue_step(sampling).await?;
        }
        Ok(has_room)
    }

    /// What one step of the token loop costs on any device at the session's position.
    ///
    /// # Errors
    /// If the device has no space for the graph.
    pub async fn step_cost(&mut self, sampling: DeviceSampling) -> Result<Cost, RuntimeError> {
        let range = self.filled..self.filled + 1;
        let prepared = self.prepared(output_of(sampling), 1).await?;
        Ok(prepared.cost(&step(&range, 0)))
    }

    /// Runs one step of the token loop with a clock around every dispatch. The step counts for nothing. There is no profile on the
    /// CPU, or where the host computes experts between dispatches.
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

    /// Runs the next `tokens` tokens of a prompt as one pass with a clock around every dispatch. The pass counts for nothing. Nothing
    /// is returned on the CPU.
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
        // The first pass makes the clocks warm.
        plan.profile(&step).await?;
        let run = plan.profile(&step).await?;
        Ok(Some(plan.profile_table(&[run], &step, None)))
    }
}
