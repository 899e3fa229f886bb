//! What a reply must look like.

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use rullama_chat::{CallSyntax, Output, Tool};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};

use crate::{
    GuidanceError, calls, literal,
    regex::{self, Extent},
    schema,
    vocabulary::top_level,
};

/// The name of the grammar of text next to calls.
const TEXT: &str = "text";

/// The format of a reply. With text and calls, it is one or the other; with calls only, it is a call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// The format of text.
    #[serde(default)]
    pub text: Option<TextFormat>,
    /// The tools that may be called.
    #[serde(default)]
    pub calls: Option<CallFormat>,
}

/// The format of text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TextFormat {
    /// JSON that matches a schema.
    Json(Value),
    /// Text that a regular expression of JavaScript matches as a whole.
    Regex {
        /// The pattern, without slashes.
        pattern: String,
        /// Its flags.
        #[serde(default)]
        flags: String,
    },
    /// A grammar in llguidance's Lark notation.
    Lark(String),
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFormat {
    /// How the model writes calls.
    #[serde(deserialize_with = "output")]
    pub output: Output,
    /// The tools that may be called; arguments match their parameters.
    pub tools: Vec<Tool>,
}

fn output<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Output, D::Error> {
    let name = String::deserialize(deserializer)?;
    Output::from_name(&name).ok_or_else(|| D::Error::custom("this output format is not known"))
}

impl Format {
    /// Any JSON object.
    pub fn object() -> Self {
        Self::json(json!({ "type": "object" }))
    }

    /// JSON that matches a schema.
    pub fn json(schema: Value) -> Self {
        Self { text: Some(TextFormat::Json(schema)), calls: None }
    }

    /// A call of one of these tools, as models with this output write it.
    pub fn call(output: Output, tools: Vec<Tool>) -> Self {
        Self { text: None, calls: Some(CallFormat { output, tools }) }
    }

    /// Reads a format from JSON: `{"text": {"json": …}}` and so on, with the names of the fields.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_json(text: &str) -> Result<Self, GuidanceError> {
        let request = |error: serde_json::Error| GuidanceError::Request { why: error.to_string() };
        serde_json::from_str(text).map_err(request)
    }

    /// Whether most of the reply is JSON.
    pub(crate) fn is_json(&self) -> bool {
        let syntax = self.calls.as_ref().and_then(|calls| calls.output.call_syntax());
        matches!(self.text, Some(TextFormat::Json(_)))
            || matches!(syntax, Some(CallSyntax::Json { .. }))
    }

    /// The error for a grammar that the library refuses.
    pub(crate) fn refused(&self, why: String) -> GuidanceError {
        match (&self.text, &self.calls) {
            (Some(TextFormat::Json(_)), _) => GuidanceError::Schema { why },
            (Some(TextFormat::Regex { .. }), _) => GuidanceError::Regex { why },
            (None, Some(calls)) => {
                let names: Vec<&str> = calls.tools.iter().map(Tool::name).collect();
                GuidanceError::Tool { tool: names.join(", "), why }
            }
            _ => GuidanceError::Grammar { why },
        }
    }

    /// The grammar; `has_marker` tells whether the vocabulary has a control token of this name.
    pub(crate) fn grammar(
        &self,
        has_marker: impl Fn(&str) -> bool,
    ) -> Result<TopLevelGrammar, GuidanceError> {
        let text = self.text.as_ref().map(TextFormat::grammar).transpose()?;
        let Some(calls) = &self.calls else {
            let why = "it has neither text nor calls".into();
            return text.map(|text| top_level(vec![text])).ok_or(GuidanceError::Request { why });
        };
        let mut lark = calls::grammar(calls, &has_marker)?;
        let Some(text) = text else {
            return Ok(top_level(vec![in_lark(format!("start: call\n{lark}"))]));
        };
        if matches!(calls.output.call_syntax(), Some(CallSyntax::Json { markers: ["", _], .. })) {
            return Err(GuidanceError::AmbiguousCalls);
        }
        lark.insert_str(0, &format!("start: call | @{TEXT}\n"));
        Ok(top_level(vec![in_lark(lark), GrammarWithLexer { name: Some(TEXT.into()), ..text }]))
    }
}

impl TextFormat {
    fn grammar(&self) -> Result<GrammarWithLexer, GuidanceError> {
        Ok(match self {
            Self::Json(schema) => GrammarWithLexer {
                json_schema: Some(schema::prepared(schema)?),
                ..GrammarWithLexer::default()
            },
            Self::Regex { pattern, flags } => {
                let pattern = regex::translated(pattern, flags, Extent::Whole)?;
                in_lark(format!("start: {}", literal::regex(&pattern)))
            }
            Self::Lark(grammar) => in_lark(grammar.clone()),
        })
    }
}

fn in_lark(grammar: String) -> GrammarWithLexer {
    GrammarWithLexer { lark_grammar: Some(grammar), ..GrammarWithLexer::default() }
}
