//! Sessions whose next tokens a scheduler computes: their KV caches are copied to its pool, and what has been added comes back.

use rullama_engine::{executor::Memory, graph::Type};
use rullama_models::decoder::{Kind, PassOutput, kv_caches};

use super::{Known, Session, SessionOptions};
use crate::{error::RuntimeError, model::CacheType};

/// What sessions of a model have in common if one scheduler can run them ([`crate::Scheduler::join`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchKey {
    context: usize,
    cache: CacheType,
    chunk: usize,
    suppress: Vec<u32>,
}

impl BatchKey {
    pub(crate) fn new(context: usize, cache: CacheType, chunk: usize, suppress: &[u32]) -> Self {
        Self { context, cache, chunk, suppress: suppress.into() }
    }
}

impl Session {
    /// What other sessions must have in common with this one to be run together with it.
    pub fn batch_key(&self) -> BatchKey {
        let SessionOptions { cache, chunk, suppress, .. } = &self.options;
        BatchKey::new(self.context, *cache, *chunk, suppress)
    }

    /// The options, with every size clamped to the context and all tokens that are never chosen.
    pub(crate) fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Images and audio among the tokens.
    pub(crate) fn soft(&self) -> &Known {
        &self.soft
    }

    /// The states.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Names, layer kinds and types of the KV caches.
    pub(crate) fn kv_caches(&self) -> Vec<(String, Kind, Type)> {
        kv_caches(self.model.config(), &self.pass(PassOutput::Logits, 1))
    }

    /// The slot of a position in caches of layers of this kind.
    pub(crate) fn slot(&self, kind: Kind, position: usize) -> usize {
        match kind {
            Kind::Global => position,
            Kind::Sliding => position % self.ring,
        }
    }

    /// Discards the steps in flight, so that all tokens but the last may be in the caches. Returns how many are.
    pub(crate) fn pause(&mut self) -> usize {
        self.drop_in_flight();
        self.keep(self.tokens.len().saturating_sub(1));
        self.filled
    }

    /// Creates the caches, if no pass has done so.
    ///
    /// # Errors
    /// If memory runs out.
    pub(crate) async fn create_caches(&mut self) -> Result<(), RuntimeError> {
        for (name, _, ty) in self.kv_caches() {
            self.memory.create(&name, &ty).await?;
        }
        Ok(())
    }

    /// Continues with tokens of which the first `filled` are in the caches: those from [`Self::cached`] on were copied there, in sliding layers
    /// from position `oldest` on.
    pub(crate) fn resume(&mut self, tokens: Vec<u32>, filled: usize, oldest: usize) {
        self.written = self.written.max(filled);
        if oldest > self.filled {
            // What lies before was never copied, as if it had been overwritten.
            self.written = self.written.max(oldest + self.ring);
        }
        self.tokens = tokens;
        self.filled = filled;
    }
}
