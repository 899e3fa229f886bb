//! Errors.

/// Why a reply cannot be constrained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuidanceError {
    /// The request is not a format.
    #[error("this is not a format of a reply: {why}")]
    Request {
        /// The reason.
        why: String,
    },
    /// The schema is invalid or uses unsupported features.
    #[error("this JSON schema is not supported: {why}")]
    Schema {
        /// The reason.
        why: String,
    },
    /// The regular expression is invalid or uses unsupported features.
    #[error("this regular expression is not supported: {why}")]
    Regex {
        /// The reason.
        why: String,
    },
    /// The grammar is invalid.
    #[error("this grammar is not supported: {why}")]
    Grammar {
        /// The reason.
        why: String,
    },
    /// A call of this tool cannot be constrained.
    #[error("calls of {tool} cannot be held to its parameters: {why}")]
    Tool {
        /// The tool's name.
        tool: String,
        /// The reason.
        why: String,
    },
    /// A call is required, but no tool is declared.
    #[error("a call is required, but no tool is declared: declare one, or allow other replies")]
    NoTools,
    /// Models with this output format make no calls.
    #[error("this model makes no tool calls: do not require one")]
    NoCalls,
    /// Calls of this model look like JSON, so a reply cannot be either.
    #[error(
        "calls of this model cannot be told from other JSON: require a call, or leave out the tools"
    )]
    AmbiguousCalls,
    /// No reply of the format begins with the prefix.
    #[error("no reply of this format begins with the prefix: change the prefix, or leave it out")]
    Prefix,
    /// No end token.
    #[error("this model has no end-of-turn token, so its output cannot be constrained")]
    NoEnd,
    /// The vocabulary is too large for the token trie.
    #[error("this model's vocabulary is too large for constrained output: {bytes} bytes")]
    Vocabulary {
        /// Bytes of all token texts.
        bytes: usize,
    },
    /// A packed vocabulary that [`TokenTexts::pack`](crate::TokenTexts::pack) did not write.
    #[error("the vocabulary is damaged: pass it as the model gave it")]
    Packed,
    /// The grammar exceeded its limits during generation.
    #[error("cannot constrain the output any further; try a simpler format: {why}")]
    Lost {
        /// The reason.
        why: String,
    },
}
