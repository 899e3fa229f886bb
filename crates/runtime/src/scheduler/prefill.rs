//! Prompts, a chunk at a time.

use super::{RequestId, Scheduler, Sink, faults::is_out_of_memory, running::Running};
use crate::error::RuntimeError;

impl Scheduler {
    /// Prefills a chunk of the next request whose prompt is not done, in turn; false if there is none.
    pub(super) async fn prefill_chunk(
        &mut self,
        sink: &mut Sink<'_>,
    ) -> Result<bool, RuntimeError> {
        let unfinished = |running: &&Running| !running.is_prefilled();
        let ids = || self.running.iter().filter(unfinished).map(|running| running.id.0);
        let next = ids().filter(|id| *id > self.prefilled).min().or_else(|| ids().min());
        let Some(next) = next else { return Ok(false) };
        self.prefilled = next;
        let index = self.running.iter().position(|running| running.id.0 == next);
        let Some(index) = index else { return Ok(false) };
        match self.prefill(index).await {
            Err(error) if is_out_of_memory(&error) && self.shrink_pool(index) => {}
            Err(error) => self.fail(&[RequestId(next)], error, sink)?,
            Ok(()) => {}
        }
        Ok(true)
    }

    async fn prefill(&mut self, index: usize) -> Result<(), RuntimeError> {
        let running = &mut self.running[index];
        let chunk = self.passes.chunk(&running.content, running.filled)?;
        let end = running.filled + chunk.count;
        self.pool.cover(&mut running.pages, end)?;
        let range = running.filled..end;
        self.passes
            .prefill(running.adapter, chunk, &running.content, range, &running.pages)
            .await?;
        running.filled = end;
        // Only what every prompt with this beginning would compute in the same passes is shared, so that sharing changes no bit: a session
        // may have computed its beginning otherwise.
        if chunk.is_full && self.options.keep_prefixes && running.borrowed.is_none() {
            self.pool.keep_prefix(&running.pages, running.content.key(running.adapter, end));
        }
        Ok(())
    }
}
