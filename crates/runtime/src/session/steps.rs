//! Prefill, logits, and the token loop with steps in flight.

use std::ops::Range;

use rullama_engine::{cpu::Data, executor::Device, gpu::Fence, graph::Step, ops::Draw};
use rullama_models::decoder::{Inputs, PassOutput};

use super::{MAX_DRAFTS, Session, prepared::PreparedPass, soft::is_soft};
use crate::{error::RuntimeError, model::Model};

/// Sizes of prefill passes, up to the session's limit. Powers of two: a half-empty pass takes hardly longer than a full one of half the
/// size, so the remaining tokens go through one pass.
const CHUNKS: [usize; 7] = [8, 16, 32, 64, 128, 256, 512];

/// How the device samples the next token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DeviceSampling {
    /// The most likely token.
    Greedy,
    /// A random token.
    Drawn {
        /// Sampling parameters.
        draw: Draw,
        /// Random seed; the position is mixed in.
        seed: u32,
    },
}

impl Session {
    /// Writes all tokens but the last to the KV caches. `each` receives the number of cached tokens after every pass and cancels by
    /// returning false; finished passes stay cached.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn prefill(
        &mut self,
        each: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, RuntimeError> {
        // Keep two passes queued: the device never idles, and a cancellation does not wait for a long queue.
        let mut under_way: Option<Fence> = None;
        while self.filled + 1 < self.tokens.len() {
            let left = self.tokens.len() - 1 - self.filled;
            let size = chunk(left, self.options.chunk);
            let count = self.uncut(self.filled, left.min(size))?;
            let size = size.max(count);
            let range = self.filled..self.filled + count;
            self.write_tokens(PassOutput::Caches, size, range.clone()).await?;
            let model = self.model.clone();
            let soft = self.has_soft(range.clone());
            let prepared = self.prepared_for(PassOutput::Caches, size, soft).await?;
            prepared.run(&model.0, &step(&range, 0)).await?;
            self.advance(count);
            if left > count {
                let queued = model.0.weights.fence()?;
                if let Some(before) = std::mem::replace(&mut under_way, queued) {
                    before.wait().await?;
                }
            }
            if !each(self.filled) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The logits of the last token.
    ///
    /// # Errors
    /// If there is no token, or the device fails.
    pub async fn logits(&mut self) -> Result<Vec<f32>, RuntimeError> {
        self.drop_in_flight();
        if self.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        // The last token must be computed again for its logits, even if it is cached.
        self.keep(self.tokens.len() - 1);
        self.prefill(&mut |_| true).await?;
        // The prompt ends with an image block, which prefill cannot split before the last token.
        if self.filled == self.tokens.len() {
            return Err(RuntimeError::NotWithMedia {
                what: "end with them: add text after the last one",
            });
        }
        self.logits_of(1).await
    }

    /// The logits of every token that is not in the caches yet, row by row.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn all_logits(&mut self, rows: &mut dyn FnMut(&[f32])) -> Result<(), RuntimeError> {
        self.drop_in_flight();
        let most = self.options.chunk.min(LOGIT_ROWS);
        while self.filled < self.tokens.len() {
            let count = self.uncut(self.filled, most)?;
            rows(&self.logits_of(count).await?);
        }
        Ok(())
    }

    /// As [`Self::all_logits`], but batch-invariant, as in the verification of drafts.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn logits_batch_invariant(
        &mut self,
        rows: &mut dyn FnMut(&[f32]),
    ) -> Result<(), RuntimeError> {
        self.drop_in_flight();
        while self.filled < self.tokens.len() {
            let count = (self.tokens.len() - self.filled).min(MAX_DRAFTS + 1);
            let logits = self.logits_with(PassOutput::LogitsEach, count, MAX_DRAFTS + 1).await?;
            rows(&logits);
        }
        Ok(())
    }

    /// Samples the next token on the device and appends it; `None` at the end of the context.
    ///
    /// # Errors
    /// If there is no token, or the device fails.
    pub async fn next(&mut self, sampling: DeviceSampling) -> Result<Option<u32>, RuntimeError> {
        if self.tokens.is_empty() {
            return Err(RuntimeError::EmptyPrompt);
        }
        if self.tokens.len() >= self.context {
            return Ok(None);
        }
        if self.drafts_now() && !is_soft(self.tokens[self.tokens.len() - 1]) {
            return self.next_drafted(sampling).await;
        }
        if self.in_flight_sampling != Some(sampling) {
            self.drop_in_flight();
        }
        self.undrafted();
        if self.in_flight.is_empty() {
            self.keep(self.tokens.len() - 1);
            self.prefill(&mut |_| true).await?;
            self.in_flight_sampling = Some(sampling);
        }
        while self.in_flight.len() < self.steps_in_flight()
            && self.filled + self.in_flight.len() < self.context
        {
            self.enqueue_step(sampling).await?;
        }
        let results = self.in_flight.pop_front().expect("one was queued just now");
        let token = match results.wait().await?.first() {
            Some(Data::U32(ids)) => ids[0],
            other => panic!("a sampled token is an id, not {other:?}"),
        };
        self.filled += 1;
        self.tokens.push(token);
        Ok(Some(token))
    }

    /// Maximum steps in flight: a step that needs the host cannot be queued before its token is known.
    pub fn steps_in_flight(&self) -> usize {
        if feeds_itself(&self.model) { self.options.in_flight.max(1) } else { 1 }
    }

    /// Queues one step after those in flight.
    pub(super) async fn enqueue_step(
        &mut self,
        sampling: DeviceSampling,
    ) -> Result<(), RuntimeError> {
        let seed = match sampling {
            DeviceSampling::Greedy => 0,
            DeviceSampling::Drawn { seed, .. } => seed,
        };
        let output = output_of(sampling);
        // Decode steps read a token id from the device; soft tokens have none.
        if self.tokens.last().is_some_and(|id| is_soft(*id)) {
            return Err(RuntimeError::NotWithMedia {
                what: "end with them: add text after the last one",
            });
        }
        let position = self.filled + self.in_flight.len();
        let range = position..position + 1;
        self.write_positions(output, 1, range.clone()).await?;
        let first = self.in_flight.is_empty();
        let last = self.tokens.last().copied().unwrap_or(0);
        let rows = if first { self.model.0.table_rows(&[last]).await? } else { None };
        let model = self.model.clone();
        let prepared = self.prepared(output, 1).await?;
        if first {
            prepared.write_ids(Inputs::TOKEN, &[last]);
        }
        if let Some(rows) = rows {
            prepared.write_f32(Inputs::PER_LAYER, &rows);
        }
        if let DeviceSampling::Drawn { draw, .. } = sampling {
            prepared.write_f32(Inputs::DRAW, &<[f32; 4]>::from(draw));
        }
        let token = prepared.result.expect("a sampling graph has a result");
        let results = prepared.run_reading(&model.0, &step(&range, seed), &[token]).await?;
        self.in_flight.push_back(results);
        self.written = self.written.max(range.end);
        Ok(())
    }

    /// Logits of the next `count` tokens.
    async fn logits_of(&mut self, count: usize) -> Result<Vec<f32>, RuntimeError> {
        let size = if count == 1 { 1 } else { count.max(self.options.chunk.min(LOGIT_ROWS)) };
        self.logits_with(PassOutput::Logits, count, size).await
    }

    /// Logits of the next `count` tokens, by a pass of `size` tokens.
    async fn logits_with(
        &mut self,
        output: PassOutput,
        count: usize,
        size: usize,
    ) -> Result<Vec<f32>, RuntimeError> {
        let range = self.filled..self.filled + count;
        self.write_tokens(output, size, range.clone()).await?;
        let model = self.model.clone();
        let soft = self.has_soft(range.clone());
        let prepared = self.prepared_for(output, size, soft).await?;
        let logits = prepared.result.expect("a graph of logits has a result");
        let results = prepared.run_reading(&model.0, &step(&range, 0), &[logits]).await?;
        let mut rows = match results.wait().await?.pop() {
            Some(Data::F32(rows)) => rows,
            other => panic!("logits are f32, not {other:?}"),
        };
        rows.truncate(count * self.model.config().vocabulary);
        self.advance(count);
        Ok(rows)
    }

    fn advance(&mut self, count: usize) {
        self.filled += count;
        self.written = self.written.max(self.filled);
    }

    /// Writes all inputs of a pass over these tokens; padding ids are 0.
    pub(super) async fn write_tokens(
        &mut self,
        output: PassOutput,
        size: usize,
        range: Range<usize>,
    ) -> Result<(), RuntimeError> {
        let soft = self.has_soft(range.clone());
        let model = self.model.clone();
        write_rope(self.prepared_for(output, size, soft).await?, &model.0, size, range.start);
        if soft {
            self.write_rows(output, size, range.clone()).await?;
        }
        // Soft tokens use the per-layer inputs of token 0, the padding token.
        let id = |id: &u32| if is_soft(*id) { 0 } else { *id };
        let mut ids: Vec<u32> = self.tokens[range].iter().map(id).collect();
        let rows = self.model.0.table_rows(&ids).await?;
        ids.resize(size, 0);
        let width = self.model.config().table_width();
        let prepared = self.prepared_for(output, size, soft).await?;
        if let Some(mut rows) = rows {
            rows.resize(size * width, 0.0);
            prepared.write_f32(Inputs::PER_LAYER, &rows);
        }
        prepared.write_ids(Inputs::IDS, &ids);
        Ok(())
    }

    pub(super) async fn write_positions(
        &mut self,
        output: PassOutput,
        size: usize,
        range: Range<usize>,
    ) -> Result<(), RuntimeError> {
        let model = self.model.clone();
        let prepared = self.prepared(output, size).await?;
        write_rope(prepared, &model.0, size, range.start);
        Ok(())
    }
}

/// Whether decode steps run without the host, so that several can be in flight.
pub(crate) fn feeds_itself(model: &Model) -> bool {
    let on_gpu = matches!(model.device(), Device::Gpu(_));
    let table = model.0.table_resident || model.config().per_layer.is_none();
    on_gpu && table && model.host_experts() == 0
}

pub(super) fn output_of(sampling: DeviceSampling) -> PassOutput {
    match sampling {
        DeviceSampling::Greedy => PassOutput::Greedy,
        DeviceSampling::Drawn { .. } => PassOutput::Drawn,
    }
}

/// Maximum logit rows per pass: a row of a 256k vocabulary is a megabyte.
const LOGIT_ROWS: usize = 32;

fn write_rope(prepared: &PreparedPass, model: &crate::model::Inner, size: usize, first: usize) {
    // Positions fit: a context has fewer than 2^24 tokens.
    for (input, table) in model.rope_tables(&(first as u32..(first + size) as u32)) {
        prepared.write_f32(input, &table);
    }
}

pub(super) fn step(range: &Range<usize>, seed: u32) -> Step {
    Step { position: range.start as u32, count: range.len() as u32, seed, ..Step::default() }
}

/// Sizes of prefill passes up to `most` tokens.
pub(crate) fn chunks(most: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    CHUNKS.into_iter().filter(move |size| *size < most).chain([most])
}

/// Size of the next prefill pass for `left` tokens: the smallest that is more than half full, otherwise the largest that is full.
pub(crate) fn chunk(left: usize, most: usize) -> usize {
    let mut sizes = chunks(most);
    let fitting = sizes.clone().find(|size| left <= *size && left * 2 > *size);
    let full = sizes.rfind(|size| *size <= left);
    fitting.or(full).unwrap_or(CHUNKS[0].min(most))
}

#[cfg(test)]
mod tests {
    use super::chunk;

    #[test]
    fn chunks_are_full_or_more_than_half_full() {
        for (left, most, size) in [
            (1, 512, 8),
            (5, 512, 8),
            (8, 512, 8),
            (9, 512, 16),
            (17, 512, 32),
            (60, 512, 64),
            (65, 512, 128),
            (511, 512, 512),
            (2000, 512, 512),
            (200, 512, 256),
            (300, 512, 512),
            (3, 7, 7),
            (9, 7, 7),
            (1, 1, 1),
            (5, 1, 1),
            (3, 256, 8),
            (200, 256, 256),
        ] {
            assert_eq!(chunk(left, most), size, "{left} tokens, {most} at most");
        }
    }
}
