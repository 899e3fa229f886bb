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
    /// A model file brings a template of no known family.
    #[error(
        "the model's chat template is of no known family: choose the model family, or use a model of a known one"
    )]
    ForeignTemplate,
    /// Messages that a template does not accept in this order.
    #[error(
        "message {index} is of role {role}: after an optional system message, user and assistant must alternate"
    )]
    RoleOrder {
        /// Its place in the conversation.
        index: usize,
        /// Its role.
        role: String,
    },
    /// A model that knows no tools.
    #[error(
        "this model's chat template has no place for tools: leave them out, or use another model"
    )]
    NoTools,
    /// Several calls in a message of a model that makes one at a time.
    #[error(
        "a message has {count} tool calls, but this model makes one at a time: give one call per message"
    )]
    OneCall {
        /// Number of calls.
        count: usize,
    },
    /// A language code without a known name.
    #[error("language code {code:?} is not known: give an ISO 639-1 code such as en, de or pt-BR")]
    UnknownLanguage {
        /// The code.
        code: String,
    },
    /// The model file's own template could not be run.
    #[error("the model's chat template failed: {message}")]
    Template {
        /// What the template engine or the template itself says.
        message: String,
    },
}
