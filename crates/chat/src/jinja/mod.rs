//! A small interpreter for the part of Jinja that chat templates use, made to be fed untrusted templates.
//!
//! Every step is paid for from one budget, by the amount of text or elements it touches or makes, before it is done:
//! that bounds time and memory alike. Nesting is limited in the template, in calls and in data. There is nothing to
//! reach outside: no files, no clock, no other templates, and no object but the data passed in.

mod arguments;
mod ast;
mod checks;
mod data;
mod evaluate;
mod expressions;
mod filters;
mod lexer;
mod machine;
mod methods;
mod operators;
mod parser;
mod sequences;
mod value;

use serde_json::{Map, Value};

use crate::{ChatError, Limits};

/// Runs a template with the given variables.
pub(crate) fn run(
    source: &str,
    variables: &Map<String, Value>,
    limits: &Limits,
) -> Result<String, ChatError> {
    if source.len() > limits.template_bytes {
        return Err(ChatError::TemplateLimit { line: 1, limit: "the length of a template" });
    }
    let template = parser::parse(source)?;
    machine::Machine::new(limits, variables)?.run(&template)
}
