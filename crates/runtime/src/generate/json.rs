//! Replies constrained to JSON, by llguidance: any object, or what a schema describes.

use std::sync::Arc;

use llguidance::{
    Matcher, ParserFactory,
    api::TopLevelGrammar,
    toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie},
};
use rullama_tokenizer::{Render, Tokenizer};
use serde_json::{Value, json};

use super::constraint::{Constraint, ConstraintError};

/// Longer tokens are never chosen; the longest of known vocabularies is far shorter.
const LONGEST_TOKEN: usize = 256;
/// The table of token texts counts its nodes in 22 bits.
const MOST_BYTES: usize = 1 << 22;
/// White space between values. Bounded, as models without an idea what to say next may never leave it.
const SPACE: &str = r"[ \t\n\r]{1,32}";

/// A JSON format prepared for a model's vocabulary; every reply takes its own [`Constraint`] from it.
#[derive(Clone)]
pub struct JsonFormat(Matcher);

impl JsonFormat {
    /// Any JSON object.
    ///
    /// # Errors
    /// If the vocabulary does not allow it.
    pub fn object(tokenizer: &Tokenizer) -> Result<Self, ConstraintError> {
        Self::schema(tokenizer, json!({ "type": "object" }))
    }

    /// What a JSON schema describes.
    ///
    /// # Errors
    /// If it is no schema, or uses what is not supported.
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
        let vocabulary = vocabulary(tokenizer)?;
        let refused = |why: String| ConstraintError::Schema { why };
        let mut factory =
            ParserFactory::new_simple(&vocabulary).map_err(|e| refused(e.to_string()))?;
        factory.quiet().limits_mut().verbose_errors = false;
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let matcher = Matcher::new(factory.create_parser(grammar));
        match matcher.get_error() {
            Some(why) => Err(refused(why)),
            None => Ok(Self(matcher)),
        }
    }

    /// A constraint for one answer.
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
    /// What may come next.
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

#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
fn lost(error: impl ToString) -> ConstraintError {
    ConstraintError::Lost { why: error.to_string() }
}

/// The texts of all tokens that may be part of an answer, as a tree.
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

/// The bytes a token adds to an answer; none if it must not be part of one.
fn text(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let text = tokenizer.piece(id, Render::Plain);
    // The tree marks special tokens by this byte, which no text has.
    let special = text.contains(&TokTrie::SPECIAL_TOKEN_MARKER);
    if special || is_marker(&text) || text.len() > LONGEST_TOKEN {
        Vec::new()
    } else {
        text.into_owned()
    }
}

/// Whether a token is one of the chat's markers, which files may call text: `<|turn>`, `<turn|>`, `<|think|>`. The same characters in
/// an answer are spelled in smaller pieces.
fn is_marker(text: &[u8]) -> bool {
    (text.starts_with(b"<|") && text.ends_with(b">"))
        || (text.starts_with(b"<") && text.ends_with(b"|>"))
}
