//! Text to token ids and back, in Gemma 4's manner.
//!
//! The vocabulary is a byte-pair encoding with an explicit merge list over Unicode characters, spaces written as `▁`,
//! characters without a token written as byte tokens. It is built from a plain [`Vocab`]; this crate reads no files.

mod bpe;
mod chars;
mod decode;
mod error;
mod hash;
mod joints;
mod kind;
mod marker;
mod merge_list;
mod merges;
mod roles;
mod seen;
mod stream;
mod texts;
mod tokenizer;
mod vocab;
mod word;

pub use decode::Render;
pub use error::TokenizerError;
pub use marker::{Span, Special};
pub use stream::{Stream, Utf8Stream};
pub use tokenizer::Tokenizer;
pub use vocab::Vocab;
