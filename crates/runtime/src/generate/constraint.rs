//! Constrained replies: which tokens may come next, and where thinking before the reply is free.

use rullama_tokenizer::Tokenizer;

/// The tokens around a thought.
const THOUGHT: [&str; 2] = ["<|channel>", "<channel|>"];

/// A constraint on a reply, and how far the reply is.
pub trait Constraint {
    /// Works out what may come next; asked before each token of the answer.
    ///
    /// # Errors
    /// If the form is too large to follow.
    fn prepare(&mut self) -> Result<(), ConstraintError>;

    /// Whether this token may come next. Tokens that end an answer may where it is complete.
    fn allows(&self, id: u32) -> bool;

    /// Takes the token that came; true if nothing but the end can follow.
    ///
    /// # Errors
    /// If the token was not allowed, or the form is too large to follow.
    fn accept(&mut self, id: u32) -> Result<bool, ConstraintError>;
}

/// Why a reply cannot be constrained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// The schema is none, or uses what is not supported.
    #[error("this JSON schema is not supported: {why}")]
    Schema {
        /// What is wrong with it.
        why: String,
    },
    /// The model has no token to end an answer with.
    #[error("this model has no end-of-turn token, so its output cannot be constrained")]
    NoEnd,
    /// There are more token texts than the table of them can hold.
    #[error("this model's vocabulary is too large for constrained output: {bytes} bytes")]
    Vocabulary {
        /// Bytes of all token texts.
        bytes: usize,
    },
    /// The form grew out of bounds while it was followed.
    #[error("cannot constrain the output any further; try a simpler schema: {why}")]
    Lost {
        /// What happened.
        why: String,
    },
}

/// Where an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// At the beginning: a thought or the answer may begin.
    Fresh,
    /// Inside a thought, which is free but for ending the whole.
    Thought,
    /// In the answer.
    Answer,
}

/// What a token is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Thought,
    Answer,
    /// The answer, which is complete with it.
    End,
}

/// A constraint over the answer, after a thought that is free.
pub(super) struct ConstraintState {
    constraint: Box<dyn Constraint>,
    phase: Phase,
    open: Option<u32>,
    close: Option<u32>,
}

impl ConstraintState {
    /// `thinks` says that a thought may come first, `in_thought` that the prompt has opened one.
    pub(super) fn new(
        constraint: Box<dyn Constraint>,
        tokenizer: &Tokenizer,
        thinks: bool,
        in_thought: bool,
    ) -> Self {
        let [open, close] = THOUGHT.map(|text| tokenizer.id_of(text));
        let phase = match close {
            Some(_) if in_thought => Phase::Thought,
            Some(_) if thinks => Phase::Fresh,
            _ => Phase::Answer,
        };
        Self { constraint, phase, open, close }
    }

    /// Whether all that comes is the answer.
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

    /// Takes a token that does not end the whole.
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
