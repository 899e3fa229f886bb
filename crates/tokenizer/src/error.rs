//! Errors in a vocabulary.

/// Why a tokenizer could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// There are no tokens.
    #[error("the vocabulary is empty: the file has no tokenizer")]
    EmptyVocabulary,
    /// An unknown tokenizer model.
    #[error(
        "tokenizer model {model:?} is not supported (known: gpt2, llama, gemma4): use a model with one of these"
    )]
    UnknownModel {
        /// Its name in the file.
        model: String,
    },
    /// An unknown pre-tokenizer. Substituting another would give plausible but wrong ids.
    #[error(
        "pre-tokenizer {name:?} is not supported: text would be split in the wrong places; use a model with a supported one (such as llama-bpe, qwen2, smollm, gpt-2)"
    )]
    UnknownPreTokenizer {
        /// Its name in the file.
        name: String,
    },
    /// A byte-level vocabulary that does not name its pre-tokenizer.
    #[error(
        "the file does not name the pre-tokenizer of its vocabulary (tokenizer.ggml.pre): convert the model again with a current converter"
    )]
    NoPreTokenizer,
    /// Neither merges nor scores to derive them from.
    #[error("the vocabulary has neither merges nor scores: use a file whose tokenizer has merges")]
    NoMerges,
    /// A scored token longer than any real one: every split of it into two is tried.
    #[error(
        "token {id} is {bytes} bytes long, more than the {limit} supported without a merge list: the file is damaged"
    )]
    PieceTooLong {
        /// The token.
        id: u32,
        /// Its length.
        bytes: usize,
        /// The maximum.
        limit: usize,
    },
    /// An array with one entry per token has another length.
    #[error("{tokens} tokens but {count} {array}: the file is damaged")]
    LengthMismatch {
        /// The array, as the file calls it.
        array: &'static str,
        /// Its length.
        count: usize,
        /// Number of tokens.
        tokens: usize,
    },
    /// More tokens or merges than any real vocabulary has.
    #[error("{count} {array} are more than the {limit} supported: the file is damaged")]
    TooMany {
        /// The array, as the file calls it.
        array: &'static str,
        /// Its length.
        count: usize,
        /// The maximum.
        limit: usize,
    },
    /// All token texts together are too long.
    #[error("the token texts take {bytes} bytes, which do not fit in memory: the file is damaged")]
    TextTooLong {
        /// Their length.
        bytes: u64,
    },
    /// A special token longer than any real one: searching for it at every position would be too slow.
    #[error(
        "special token {id} is {bytes} bytes long, more than the {limit} supported: the file is damaged"
    )]
    MarkerTooLong {
        /// The token.
        id: u32,
        /// Its length.
        bytes: usize,
        /// The maximum.
        limit: usize,
    },
    /// An undefined token type.
    #[error("token {id} has unknown type {value} (known: 1 to 6): the file is damaged or too new")]
    UnknownTokenType {
        /// The token.
        id: u32,
        /// Its type number.
        value: i64,
    },
    /// Two tokens have the same text, so the encoding is ambiguous.
    #[error("tokens {first} and {second} have the same text {text:?}: the file is damaged")]
    DuplicateToken {
        /// The lower id.
        first: u32,
        /// The higher id.
        second: u32,
        /// Beginning of their text.
        text: String,
    },
    /// A byte token whose text is not `<0xHH>`.
    #[error("byte token {id} has text {text:?} instead of the form <0xHH>: the file is damaged")]
    InvalidByteToken {
        /// The token.
        id: u32,
        /// Beginning of its text.
        text: String,
    },
    /// Some character has neither a token nor byte tokens to fall back to.
    #[error("no token for byte {byte:#04X} and no unknown token: the file is damaged")]
    NoFallback {
        /// The first byte without a token.
        byte: u8,
    },
    /// A merge that is not two pieces separated by a space.
    #[error("merge {index} is {text:?}, not two pieces separated by a space: the file is damaged")]
    MalformedMerge {
        /// Its index in the list.
        index: usize,
        /// Beginning of its text.
        text: String,
    },
    /// A merge whose parts or result are not in the vocabulary.
    #[error(
        "merge {index} names the piece {piece:?}, which is not in the vocabulary: the file is damaged"
    )]
    UnknownPiece {
        /// Its index in the list.
        index: usize,
        /// Beginning of the piece.
        piece: String,
    },
    /// A merge whose parts or result are control, user-defined, unknown, unused or byte tokens: plain text could forge them.
    #[error(
        "merge {index} names the piece {piece:?}, which is not a normal token: plain text could forge it"
    )]
    SpecialPiece {
        /// Its index in the list.
        index: usize,
        /// Beginning of the piece.
        piece: String,
    },
    /// A special id that is negative or past the end of the vocabulary.
    #[error("{key} is {id}, but there are only {tokens} tokens: the file is damaged")]
    IdPastVocabulary {
        /// The metadata key of the id.
        key: &'static str,
        /// The id.
        id: i64,
        /// Number of tokens.
        tokens: u32,
    },
}

impl TokenizerError {
    pub(crate) fn unknown_model(model: &str) -> Self {
        Self::UnknownModel { model: beginning(model) }
    }

    pub(crate) fn unknown_pre_tokenizer(name: &str) -> Self {
        Self::UnknownPreTokenizer { name: beginning(name) }
    }

    pub(crate) fn duplicate(first: u32, second: u32, text: &str) -> Self {
        Self::DuplicateToken { first, second, text: beginning(text) }
    }

    pub(crate) fn invalid_byte(id: u32, text: &str) -> Self {
        Self::InvalidByteToken { id, text: beginning(text) }
    }

    pub(crate) fn malformed_merge(index: usize, text: &str) -> Self {
        Self::MalformedMerge { index, text: beginning(text) }
    }

    pub(crate) fn unknown_piece(index: usize, piece: &str) -> Self {
        Self::UnknownPiece { index, piece: beginning(piece) }
    }

    pub(crate) fn special_piece(index: usize, piece: &str) -> Self {
        Self::SpecialPiece { index, piece: beginning(piece) }
    }
}

/// Token texts have any length; error messages show only the beginning.
fn beginning(text: &str) -> String {
    text.chars().take(64).collect()
}
