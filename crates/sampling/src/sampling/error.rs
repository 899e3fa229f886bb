//! Errors of options and of sampling.

/// Why options were refused or no token could be chosen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// The options are not a JSON object.
    #[error("options must be a JSON object of names and values, got {got}")]
    NotAnObject {
        /// Kind of JSON value found.
        got: &'static str,
    },
    /// An option has the wrong JSON type.
    #[error("option \"{option}\" must be {expected}, got {got}")]
    WrongType {
        /// Name of the option.
        option: String,
        /// The expected type.
        expected: &'static str,
        /// The value found, shortened.
        got: String,
    },
    /// An option's value is out of range.
    #[error("option \"{option}\" must be {expected}, got {got}")]
    OutOfRange {
        /// Name of the option.
        option: &'static str,
        /// The allowed values.
        expected: &'static str,
        /// The value found.
        got: f64,
    },
    /// Every token is masked, or all logits are NaN.
    #[error(
        "none of the {logits} tokens can be sampled: all are suppressed, excluded by the grammar or NaN; \
         relax the biases or the grammar, or check the model file"
    )]
    NoCandidate {
        /// Number of logits.
        logits: usize,
    },
    /// A saved sampler state holds an impossible value.
    #[error("the saved sampler state is damaged: its {field} is {got}; start a new session")]
    DamagedState {
        /// The field.
        field: &'static str,
        /// Its value.
        got: f64,
    },
}
