//! Replies constrained by llguidance: to any JSON object, a JSON schema, a grammar or a regular expression.

use std::sync::Arc;

use llguidance::{
    Matcher, ParserFactory,
    api::TopLevelGrammar,
    toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie},
};
use rullama_tokenizer::{Render, Tokenizer};
use serde_json::{Value, json};

use super::constraint::{Constraint, ConstraintError};

/// Longer tokens are never allowed; known vocabularies have far shorter ones.
const LONGEST_TOKEN: usize = 256;
/// The token trie counts its nodes in 22 bits.
const MOST_BYTES: usize = 1 << 22;
/// White space between values, bounded because weak models may otherwise emit it forever.
const SPACE: &str = r"[ \t\n\r]{1,32}";

/// A format compiled for a model's vocabulary: JSON or, with the feature `grammars`, another grammar. Every reply gets its own
/// [`Constraint`].
#[derive(Clone)]
pub struct JsonFormat(Matcher);

impl JsonFormat {
    /// Any JSON object.
    ///
    /// # Errors
    /// If the vocabulary does not support it.
    pub fn object(tokenizer: &Tokenizer) -> Result<Self, ConstraintError> {
        Self::schema(tokenizer, json!({ "type": "object" }))
    }

    /// JSON that matches a schema.
    ///
    /// # Errors
    /// If the schema is invalid or uses unsupported features.
    pub fn schema(tokenizer: &Tokenizer, mut schema: Value) -> Result<Self, ConstraintError> {
        match &mut schema {
            Value::Object(keys) => {
                let options = json!({ "whitespace_pattern": SPACE });
                keys.entry("x-guidance").or_insert(options);
            }
            Value::Bool(_) => {}
            _ => {
                let why = "a schema is an object, such as {\"type\":\"object\"}".into();
                return Err(ConstraintError::Schema { why });
            }
        }
        let refused = |why: String| ConstraintError::Schema { why };
        Self::compiled(tokenizer, TopLevelGrammar::from_json_schema(schema), refused)
    }

    /// Text that matches a grammar in llguidance's Lark notation.
    ///
    /// # Errors
    /// If the grammar is invalid.
    #[cfg(feature = "grammars")]
    pub fn lark(tokenizer: &Tokenizer, grammar: String) -> Result<Self, ConstraintError> {
        let refused = |why: String| ConstraintError::Grammar { why };
        Self::compiled(tokenizer, TopLevelGrammar::from_lark(grammar), refused)
    }

    /// Text that matches a regular expression as a whole.
    ///
    /// # Errors
    /// If the expression is invalid.
    #[cfg(feature = "grammars")]
    pub fn regex(tokenizer: &Tokenizer, regex: &str) -> Result<Self, ConstraintError> {
        let refused = |why: String| ConstraintError::Grammar { why };
        Self::compiled(tokenizer, TopLevelGrammar::from_regex(regex), refused)
    }

    fn compiled(
        tokenizer: &Tokenizer,
        grammar: TopLevelGrammar,
        refused: impl Fn(String) -> ConstraintError,
    ) -> Result<Self, ConstraintError> {
        let vocabulary = vocabulary(tokenizer)?;
        let mut factory =
            ParserFactory::new_simple(&vocabulary).map_err(|e| refused(e.to_string()))?;
        factory.quiet().limits_mut().verbose_errors = false;
        let matcher = Matcher::new(factory.create_parser(grammar));
        match matcher.get_error() {
            Some(why) => Err(refused(why)),
            None => Ok(Self(matcher)),
        }
    }

    /// A constraint for one reply.
    pub fn constraint(&self) -> Box<dyn Constraint> {
        Box::new(Json { matcher: self.0.clone(), allowed: SimpleVob::new() })
    }
}

impl std::fmt::Debug for JsonFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JsonFormat")
    }
}

struct Json {
    matcher: Matcher,
    /// Allowed next tokens.
    allowed: SimpleVob,
}

impl Constraint for Json {
    fn prepare(&mut self) -> Result<(), ConstraintError> {
        self.allowed = self.matcher.compute_mask_or_eos().map_err(lost)?;
        Ok(())
    }

    fn allows(&self, id: u32) -> bool {
        (id as usize) < self.allowed.len() && self.allowed.is_allowed(id)
    }

    fn accept(&mut self, id: u32) -> Result<bool, ConstraintError> {
        self.matcher.consume_token(id).map_err(lost)?;
        Ok(self.matcher.is_stopped())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn lost(error: impl ToString) -> ConstraintError {
    ConstraintError::Lost { why: error.to_string() }
}

/// A trie of the texts of all tokens that may be part of a reply.
fn vocabulary(tokenizer: &Tokenizer) -> Result<TokEnv, ConstraintError> {
    let ends: Vec<u32> = tokenizer.eot().into_iter().chain(tokenizer.eos()).collect();
    let Some(end) = ends.first() else { return Err(ConstraintError::NoEnd) };
    let mut texts: Vec<Vec<u8>> =
        (0..tokenizer.token_count()).map(|id| text(tokenizer, id)).collect();
    for id in tokenizer.unwanted() {
        texts[id as usize].clear();
    }
    let bytes = texts.iter().map(Vec::len).sum();
    if bytes >= MOST_BYTES {
        return Err(ConstraintError::Vocabulary { bytes });
    }
    let info = TokRxInfo::new(tokenizer.token_count(), *end);
    let tree = TokTrie::from(&info, &texts).with_eos_tokens(&ends);
    Ok(Arc::new(ApproximateTokEnv::new(tree)))
}

/// The bytes a token adds to a reply; empty if it is not allowed in one.
fn text(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let text = tokenizer.piece(id, Render::Plain);
    // The trie marks special tokens by this byte, which no text contains.
    let special = text.contains(&TokTrie::SPECIAL_TOKEN_MARKER);
    if special || is_marker(&text) || text.len() > LONGEST_TOKEN {
        Vec::new()
    } else {
        text.into_owned()
    }
}

/// Whether a token is a chat marker, which some files list as text: `<|turn>`, `<turn|>`, `<|think|>`. In a reply the same characters
/// are spelled by smaller tokens.
fn is_marker(text: &[u8]) -> bool {
    (text.starts_with(b"<|") && text.ends_with(b">"))
        || (text.starts_with(b"<") && text.ends_with(b"|>"))
}
