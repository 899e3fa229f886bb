//! Constrained replies: which tokens may come next. Thinking before the reply is not constrained.

use rullama_chat::{CallSyntax, Output};
use rullama_tokenizer::Tokenizer;

/// Whether a constrained reply is a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallRule {
    /// It is text, and markers in it have no meaning.
    #[default]
    Never,
    /// It is a call if it begins with the marker of one.
    Maybe,
    /// It is a call.
    Always,
}

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

    /// Whether the reply is parsed as a tool call.
    fn calls(&self) -> CallRule {
        CallRule::Never
    }
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
    /// The format is invalid or not supported.
    #[error("{why}")]
    Format {
        /// What is not supported.
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
    /// The reply as text.
    Text,
    /// The reply as a tool call.
    Call,
}

/// A constraint on the reply, after unconstrained thinking.
pub(super) struct ConstraintState {
    constraint: Box<dyn Constraint>,
    phase: Phase,
    open: Option<u32>,
    close: Option<u32>,
    /// What opens a call.
    call: Option<u32>,
    /// What the reply is, once that is known.
    reply: Option<Role>,
}

impl ConstraintState {
    /// `markers`: the tokens around thinking; `thinks`: thinking may come first; `in_thought`: the prompt ends inside thinking.
    pub(super) fn new(
        constraint: Box<dyn Constraint>,
        tokenizer: &Tokenizer,
        output: Output,
        (thinks, in_thought): (bool, bool),
    ) -> Self {
        let [open, close] = match output.thought_markers() {
            Some(markers) => markers.map(|text| tokenizer.id_of(text)),
            None => [None; 2],
        };
        let phase = match close {
            Some(_) if in_thought => Phase::Thought,
            Some(_) if thinks => Phase::Fresh,
            _ => Phase::Answer,
        };
        let call = output.call_syntax().and_then(|syntax| {
            let (CallSyntax::Pairs { markers, .. } | CallSyntax::Json { markers, .. }) = syntax;
            tokenizer.id_of(markers[0])
        });
        let reply = match constraint.calls() {
            CallRule::Never => Some(Role::Text),
            CallRule::Maybe => None,
            CallRule::Always => Some(Role::Call),
        };
        Self { constraint, phase, open, close, call, reply }
    }

    /// Whether the rest of the output is text: thinking is over or disabled, and it is no call.
    pub(super) fn is_text(&self) -> bool {
        self.phase == Phase::Answer && self.reply == Some(Role::Text)
    }

    /// Computes the allowed next tokens.
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

    /// Advances by a token that is not an end token: what it is part of, and whether it is the last one.
    pub(super) fn accept(&mut self, id: u32) -> Result<(Role, bool), ConstraintError> {
        match self.phase {
            Phase::Fresh if Some(id) == self.open => self.phase = Phase::Thought,
            Phase::Thought if Some(id) == self.close => self.phase = Phase::Answer,
            Phase::Thought => {}
            Phase::Fresh | Phase::Answer => {
                self.phase = Phase::Answer;
                let first = if Some(id) == self.call { Role::Call } else { Role::Text };
                let role = *self.reply.get_or_insert(first);
                return Ok((role, self.constraint.accept(id)?));
            }
        }
        Ok((Role::Thought, false))
    }
}
