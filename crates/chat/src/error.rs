//! What can go wrong with a conversation, a template or a tool call.

use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The conversation could not be read.
    #[error("invalid chat request: {source}")]
    Json {
        /// What the JSON reader says, with line and column.
        #[from]
        source: serde_json::Error,
    },
    /// A message's content is an object, or a list of something other than parts.
    #[error("invalid content of a {role} message: give a string, a list of parts or null")]
    ContentShape {
        /// The message's role.
        role: String,
    },
    /// A tool call's arguments are neither an object nor the text of one.
    #[error(
        "the arguments of the call to {name} are {got}: give a JSON object, or a string that holds one"
    )]
    Arguments {
        /// The called tool.
        name: String,
        /// What was found instead.
        got: &'static str,
    },
    /// A tool's schema has something else where a list or an object belongs.
    #[error("`{keyword}` in the schema of tool {tool} is {got}: give {expected}")]
    Schema {
        /// The tool's name.
        tool: String,
        /// The schema keyword.
        keyword: &'static str,
        /// What was found.
        got: &'static str,
        /// What belongs there.
        expected: &'static str,
    },
    /// The text of a tool call breaks the grammar and could not be repaired.
    #[error("malformed tool call: expected {expected} at byte {at}")]
    CallSyntax {
        /// Offset into the call's text.
        at: usize,
        /// What would have been right there.
        expected: &'static str,
    },
    /// The arguments of a tool call are nested too deeply.
    #[error("malformed tool call: arguments nested more than {limit} deep")]
    CallTooDeep {
        /// The deepest nesting that is read.
        limit: usize,
    },
    /// A model file brings a template that is not Gemma 4's. Templates are programs; we run none.
    #[error(
        "the model's chat template is not a Gemma 4 template: choose the model family, or use a Gemma 4 model"
    )]
    ForeignTemplate,
}
