//! Constrained replies by llguidance: JSON, regular expressions, grammars and tool calls.

use rullama_chat::Output;
use rullama_guidance::{Format, GuidanceError, Matcher, TokenTexts, Vocabulary};
use rullama_tokenizer::Tokenizer;
use serde_json::Value;

use super::{
    constraint::{CallRule, Constraint, ConstraintError},
    token_texts,
};

/// A format compiled for a model's vocabulary; every reply gets its own [`Constraint`].
#[derive(Debug, Clone)]
pub struct JsonFormat {
    matcher: Matcher,
    calls: CallRule,
}

impl JsonFormat {
    /// Any JSON object.
    ///
    /// # Errors
    /// If the vocabulary does not support it.
    pub fn object(tokenizer: &Tokenizer) -> Result<Self, ConstraintError> {
        Self::compile(tokenizer, Output::default(), &Format::object())
    }

    /// JSON that matches a schema.
    ///
    /// # Errors
    /// If the schema is invalid or uses unsupported features.
    pub fn schema(tokenizer: &Tokenizer, schema: Value) -> Result<Self, ConstraintError> {
        Self::compile(tokenizer, Output::default(), &Format::json(schema))
    }

    /// Any format: a regular expression, a Lark grammar, or a call whose arguments match the tool's parameters ([`Format::call`]).
    /// `output` is that of the model's template.
    ///
    /// # Errors
    /// If the format is invalid or not supported.
    pub fn compile(
        tokenizer: &Tokenizer,
        output: Output,
        format: &Format,
    ) -> Result<Self, ConstraintError> {
        let (texts, ends) = token_texts(tokenizer, output);
        let matcher = Vocabulary::new(&TokenTexts { texts, ends })?.compile(format)?;
        let calls = match (&format.text, &format.calls) {
            (_, None) => CallRule::Never,
            (None, Some(_)) => CallRule::Always,
            (Some(_), Some(_)) => CallRule::Maybe,
        };
        Ok(Self { matcher, calls })
    }

    /// A constraint for one reply.
    pub fn constraint(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }
}

impl Constraint for JsonFormat {
    fn prepare(&mut self) -> Result<(), ConstraintError> {
        self.matcher.mask()?;
        Ok(())
    }

    fn allows(&self, id: u32) -> bool {
        self.matcher.allows(id)
    }

    fn accept(&mut self, id: u32) -> Result<bool, ConstraintError> {
        Ok(self.matcher.commit(id)?)
    }

    fn calls(&self) -> CallRule {
        self.calls
    }
}

impl From<GuidanceError> for ConstraintError {
    fn from(error: GuidanceError) -> Self {
        match error {
            GuidanceError::Schema { why } => Self::Schema { why },
            GuidanceError::NoEnd => Self::NoEnd,
            GuidanceError::Vocabulary { bytes } => Self::Vocabulary { bytes },
            GuidanceError::Lost { why } => Self::Lost { why },
            other => Self::Format { why: other.to_string() },
        }
    }
}
