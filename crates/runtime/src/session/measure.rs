//! What benchmarks ask of a session beside its tokens.

use rullama_engine::gpu::profile::Table;
use rullama_models::gemma4::Want;

use super::{Session, steps::step};
use crate::error::RuntimeError;

impl Session {
    /// Waits until the device has done all that was queued.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn settle(&self) -> Result<(), RuntimeError> {
        Ok(self.model.0.weights.settle().await?)
    }

    /// Runs the next `tokens` tokens of a prompt as one run with a clock around every launch. The run counts for nothing. Nothing
    /// is returned on the CPU.
    ///
    /// # Errors
    /// If there are no such tokens, or the device fails.
    pub async fn profile_prompt(&mut self, tokens: usize) -> Result<Option<Table>, RuntimeError> {
        self.drop_ahead();
        let range = self.filled..self.filled + tokens;
        if range.is_empty() || range.end > self.tokens.len() {
            return Err(RuntimeError::EmptyPrompt);
        }
        self.write_tokens(Want::Caches, tokens, range.clone()).await?;
        self.written = self.written.max(range.end);
        let ready = self.ready(Want::Caches, tokens).await?;
        let Some(plan) = ready.whole_on_gpu() else { return Ok(None) };
        let step = step(&range, 0);
        // The first run makes the clocks warm.
        plan.profile(&step).await?;
        let run = plan.profile(&step).await?;
        Ok(Some(plan.profile_table(&[run], &step, None)))
    }
}
