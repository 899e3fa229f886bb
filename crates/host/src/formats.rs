//! What replies are constrained to, prepared for a model's vocabulary once.

use std::collections::VecDeque;

use rullama_api::{ApiError, Format};
use rullama_runtime::generate::{Constraint, ConstraintError, JsonFormat};
use rullama_tokenizer::Tokenizer;
use serde_json::json;

/// Preparing one reads the whole vocabulary; clients send the same few again and again.
const KEPT: usize = 16;

/// White space between values: a blank, or a new line with its indentation. Small models never leave longer ones.
const SPACE: &str = r" |\n {0,16}";

/// The formats of the latest requests.
#[derive(Default)]
pub(crate) struct Formats(VecDeque<(String, JsonFormat)>);

impl Formats {
    /// The constraint of a request; none where it wants text.
    pub(crate) fn constraint(
        &mut self,
        tokenizer: &Tokenizer,
        format: &Format,
    ) -> Result<Option<Box<dyn Constraint>>, ApiError> {
        let mut schema = match format {
            Format::Text => return Ok(None),
            Format::Json => json!({ "type": "object" }),
            Format::Schema(schema) => schema.clone(),
            Format::Grammar(_) => {
                let message = "grammars are not supported; send a JSON schema instead".to_owned();
                return Err(ApiError::Invalid { message });
            }
        };
        if let Some(keys) = schema.as_object_mut() {
            keys.entry("x-guidance").or_insert(json!({ "whitespace_pattern": SPACE }));
        }
        let key = schema.to_string();
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == key) {
            return Ok(Some(known.constraint()));
        }
        let invalid = |error: ConstraintError| ApiError::Invalid { message: error.to_string() };
        let made = JsonFormat::schema(tokenizer, schema).map_err(invalid)?;
        let constraint = made.constraint();
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back((key, made));
        Ok(Some(constraint))
    }
}
