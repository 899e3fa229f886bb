//! The most tokens a thought may have: the token that ends it is then forced.

use crate::error::RuntimeError;

/// Counts the tokens of thoughts.
pub(super) struct ThoughtLimit {
    open: Option<u32>,
    close: u32,
    left: usize,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the first token, which may open a thought.
    Fresh,
    Thought,
    Answer,
}

impl ThoughtLimit {
    /// `markers`: the tokens around thinking; `in_thought`: the prompt ends inside a thought.
    ///
    /// # Errors
    /// If no token ends thoughts.
    pub(super) fn new(
        limit: usize,
        [open, close]: [Option<u32>; 2],
        in_thought: bool,
    ) -> Result<Self, RuntimeError> {
        let close = close.ok_or(RuntimeError::EndlessThoughts)?;
        let phase = if in_thought { Phase::Thought } else { Phase::Fresh };
        Ok(Self { open, close, left: limit, phase })
    }

    /// Tokens that may follow before a thought must end.
    pub(super) fn remaining(&self) -> usize {
        // A thought without room is ended at its first token.
        if self.phase == Phase::Answer { usize::MAX } else { self.left.max(1) }
    }

    /// The token that must come next.
    pub(super) fn end(&self) -> Option<u32> {
        (self.phase == Phase::Thought && self.left == 0).then_some(self.close)
    }

    pub(super) fn accept(&mut self, id: u32) {
        self.phase = match self.phase {
            Phase::Thought if id == self.close => Phase::Answer,
            Phase::Thought => {
                self.left = self.left.saturating_sub(1);
                Phase::Thought
            }
            Phase::Fresh | Phase::Answer if Some(id) == self.open => Phase::Thought,
            Phase::Fresh | Phase::Answer => Phase::Answer,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: u32 = 1;
    const CLOSE: u32 = 2;

    fn limit(tokens: usize, in_thought: bool) -> ThoughtLimit {
        ThoughtLimit::new(tokens, [Some(OPEN), Some(CLOSE)], in_thought).expect("a limit")
    }

    #[test]
    fn a_thought_ends_at_its_limit() {
        let mut limit = limit(2, false);
        assert_eq!((limit.remaining(), limit.end()), (2, None));
        for id in [OPEN, 7] {
            limit.accept(id);
            assert_eq!(limit.end(), None);
        }
        assert_eq!(limit.remaining(), 1);
        limit.accept(7);
        assert_eq!(limit.end(), Some(CLOSE));
        limit.accept(CLOSE);
        assert_eq!((limit.remaining(), limit.end()), (usize::MAX, None));
        // Another thought has nothing left.
        limit.accept(OPEN);
        assert_eq!(limit.end(), Some(CLOSE));
    }

    #[test]
    fn replies_and_open_thoughts() {
        let mut reply = limit(0, false);
        reply.accept(7);
        assert_eq!((reply.remaining(), reply.end()), (usize::MAX, None));
        assert_eq!(limit(0, true).end(), Some(CLOSE));
        assert!(ThoughtLimit::new(1, [Some(OPEN), None], false).is_err());
    }
}
