//! Requests that a scheduler holds.

use super::{
    request::{Progress, RequestId},
    sessions::Borrowed,
};
use crate::{
    adapters::Adapters,
    generate::Completion,
    kv_pool::{PromptKey, SequencePages},
    session::{DeviceSampling, Known, MediaDigest, is_soft},
};

/// The prompt and what followed.
pub(super) struct Content {
    /// Tokens; those of images and audio have ids of their own.
    pub(super) tokens: Vec<u32>,
    /// The rows of images and audio.
    pub(super) soft: Known,
    /// Where images and audio begin, and what is in them.
    pub(super) media: Vec<(usize, MediaDigest)>,
}

impl Content {
    /// What the keys and values of the first tokens depend on.
    pub(super) fn key(&self, adapter: u64, length: usize) -> PromptKey<'_> {
        PromptKey { adapter, tokens: &self.tokens[..length], media: &self.media }
    }

    /// Whether there are soft tokens in a range.
    pub(super) fn has_soft(&self, range: std::ops::Range<usize>) -> bool {
        !self.media.is_empty() && self.tokens[range].iter().any(|id| is_soft(*id))
    }
}

/// A request that is not admitted yet.
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) content: Content,
    /// Tokens of the prompt and the longest completion.
    pub(super) most: usize,
    pub(super) completion: Completion,
    pub(super) adapters: Option<Adapters>,
    /// The session it continues.
    pub(super) borrowed: Option<Box<Borrowed>>,
}

/// A request with memory.
pub(super) struct Running {
    pub(super) id: RequestId,
    pub(super) content: Content,
    /// Tokens of the prompt.
    pub(super) prompt_tokens: usize,
    /// Those of them that were in the KV pool already.
    pub(super) cached_tokens: usize,
    /// Tokens of the prompt and the longest completion.
    pub(super) most: usize,
    /// How many tokens are in the KV pool, those of passes in flight not counted.
    pub(super) filled: usize,
    /// Decode passes in flight.
    pub(super) in_flight: usize,
    /// How the device chooses its tokens, once it has chosen one.
    pub(super) sampling: Option<DeviceSampling>,
    pub(super) pages: SequencePages,
    pub(super) completion: Completion,
    pub(super) adapters: Option<Adapters>,
    /// Which adapters it has: see [`super::Passes::adapter_id`].
    pub(super) adapter: u64,
    /// Where the device keeps its latest token.
    pub(super) slot: u32,
    /// The session it continues.
    pub(super) borrowed: Option<Box<Borrowed>>,
}

impl Running {
    /// Whether all tokens but the last are in the KV pool.
    pub(super) fn is_prefilled(&self) -> bool {
        self.filled + 1 >= self.content.tokens.len()
    }

    /// The position of the token that the next decode pass takes.
    pub(super) fn position(&self) -> usize {
        self.content.tokens.len() - 1 + self.in_flight
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            prefilled_tokens: self.filled.min(self.prompt_tokens),
            completion_tokens: self.content.tokens.len() - self.prompt_tokens,
        }
    }

    /// The request without its memory: what the KV pool holds of it has been computed before or is in its session.
    pub(super) fn into_waiting(self) -> (Waiting, SequencePages) {
        let Self { id, content, most, completion, adapters, pages, mut borrowed, .. } = self;
        if let Some(borrowed) = &mut borrowed {
            borrowed.is_copied = false;
        }
        (Waiting { id, content, most, completion, adapters, borrowed }, pages)
    }
}
