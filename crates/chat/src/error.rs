//! Errors in a conversation, a template or a tool call.

use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The conversation could not be read.
    #[error("invalid chat request: {source}")]
    Json {
        /// The JSON parser's message, with line and column.
        #[from]
        source: serde_json::Error,
    },
    /// A message's content is an object, or an array with items other than parts.
    #[error("invalid content of a {role} message: give a string, a list of parts or null")]
    ContentShape {
        /// The message's role.
        role: String,
    },
    /// A tool call's arguments are neither an object nor the JSON text of one.
    #[error(
        "the arguments of the call to {name} are {got}: give a JSON object, or a string that holds one"
    )]
    Arguments {
        /// The called tool.
        name: String,
        /// What was found instead.
        got: &'static str,
    },
    /// A keyword of a tool's schema has the wrong type.
    #[error("`{keyword}` in the schema of tool {tool} is {got}: give {expected}")]
    Schema {
        /// The tool's name.
        tool: String,
        /// The schema keyword.
        keyword: &'static str,
        /// What was found.
        got: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// The text of a tool call breaks the grammar and could not be repaired.
    #[error("malformed tool call: expected {expected} at byte {at}")]
    CallSyntax {
        /// Offset into the call's text.
        at: usize,
        /// The expected token.
        expected: &'static str,
    },
    /// The arguments of a tool call are nested too deeply.
    #[error("malformed tool call: arguments nested more than {limit} deep")]
    CallTooDeep {
        /// The maximum depth.
        limit: usize,
    },
    /// A model file contains a template of no known family.
    #[error(
        "the model's chat template is of no known family: choose the model family, or use a model of a known one"
    )]
    ForeignTemplate,
    /// Messages in an order that the template does not accept.
    #[error(
        "message {index} is of role {role}: after an optional system message, user and assistant must alternate"
    )]
    RoleOrder {
        /// The index of the message.
        index: usize,
        /// Its role.
        role: String,
    },
    /// A template without tool support.
    #[error(
        "this model's chat template does not support tools: leave them out, or use another model"
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
    /// A reply is to be continued where a call waits for its result.
    #[error(
        "a tool call waits for its result, so no reply can begin: add the result, or leave out the prefix"
    )]
    PrefixAfterCall,
    /// A language code without a known name.
    #[error("language code {code:?} is not known: give an ISO 639-1 code such as en, de or pt-BR")]
    UnknownLanguage {
        /// The code.
        code: String,
    },
    /// A [`TemplateRunner`](crate::TemplateRunner) outside of this crate could not render.
    #[error("{message}")]
    Runner {
        /// Its message.
        message: String,
    },
    /// The model file's own template could not be run.
    #[error("the model's chat template failed: {message}")]
    Template {
        /// The message of the template or of the template engine.
        message: String,
    },
}
