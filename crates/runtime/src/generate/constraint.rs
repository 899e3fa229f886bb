//! Constrained replies: which tokens may come next. Thinking before the reply is not constrained.

use rullama_tokenizer::Tokenizer;

/// A constraint on a reply, with its state.
pub trait Constraint {
    /// Computes the allowed next tokens; called before each token of the reply.
    ///
    /// # Errors
    /// If the grammar exceeds its limits.
    fn prepare(&mut self) -> Result<(), ConstraintError>;

    /// Whether this token may come next. End tokens are allowed once the reply is complete.
    fn allows(&self, id: u32) -> bool;

    /// Advances by a token; true if only the end can follow.
    ///
    /// # Errors
    /// If the token was not allowed, or the grammar exceeds its limits.
    fn accept(&mut self, id: u32) -> Result<bool, ConstraintError>;
}

/// Why a reply cannot be constrained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// The schema is invalid or uses unsupported features.
    #[error("this JSON schema is not supported: {why}")]
    Schema {
        /// The reason.
        why: String,
    },
    /// The grammar or regular expression is invalid.
    #[error("this grammar is not supported: {why}")]
    Grammar {
        /// The reason.
        why: String,
    },
    /// The model has no end-of-turn token.
    #[error("this model has no end-of-turn token, so its output cannot be constrained")]
    NoEnd,
    /// The vocabulary is too large for the token trie.
    #[error("this model's vocabulary is too large for constrained output: {bytes} bytes")]
    Vocabulary {
        /// Bytes of all token texts.
        bytes: usize,
    },
    /// The grammar exceeded its limits during generation.
    #[error("cannot constrain the output any further; try a simpler schema: {why}")]
    Lost {
        /// The reason.
        why: String,
    },
}

/// Phase of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// At the start: thinking or the reply may begin.
    Fresh,
    /// Inside thinking, where every token but an end token is allowed.
    Thought,
    /// In the constrained reply.
    Answer,
}

/// What a token is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Thought,
    Answer,
    /// The last token of the reply.
    End,
}

/// A constraint on the reply, after unconstrained thinking.
pub(super) struct ConstraintState {
    constraint: Box<dyn Constraint>,
    phase: Phase,
    open: Option<u32>,
    close: Option<u32>,
}

impl ConstraintState {
    /// `markers`: the tokens around thinking; `thinks`: thinking may come first; `in_thought`: the prompt ends inside thinking.
    pub(super) fn new(
        constraint: Box<dyn Constraint>,
        [open, close]: [Option<u32>; 2],
        thinks: bool,
        in_thought: bool,
    ) -> Self {
        let phase = match close {
            Some(_) if in_thought => Phase::Thought,
            Some(_) if thinks => Phase::Fresh,
            _ => Phase::Answer,
        };
        Self { constraint, phase, open, close }
    }

    /// Whether thinking is over or disabled.
    pub(super) fn in_answer(&self) -> bool {
        self.phase == Phase::Answer
    }

    pub(super) fn prepare(&mut self) -> Result<(), ConstraintError> {
        if self.phase == Phase::Thought { Ok(()) } else { self.constraint.prepare() }
    }

    pub(super) fn allows(&self, id: u32, tokenizer: &Tokenizer) -> bool {
        match self.phase {
            Phase::Fresh => Some(id) == self.open || self.constraint.allows(id),
            Phase::Thought => !tokenizer.is_end(id),
            Phase::Answer => self.constraint.allows(id),
        }
    }

    /// Advances by a token that is not an end token.
    pub(super) fn accept(&mut self, id: u32) -> Result<Role, ConstraintError> {
        match self.phase {
            Phase::Fresh if Some(id) == self.open => self.phase = Phase::Thought,
            Phase::Thought if Some(id) == self.close => self.phase = Phase::Answer,
            Phase::Thought => {}
            Phase::Fresh | Phase::Answer => {
                self.phase = Phase::Answer;
                let complete = self.constraint.accept(id)?;
                return Ok(if complete { Role::End } else { Role::Answer });
            }
        }
        Ok(Role::Thought)
    }
}
