//! Text to token ids and back, for the three kinds of vocabulary that GGUF files have.
//!
//! - A byte-pair encoding with an explicit merge list over Unicode characters, spaces written as `▁`, characters without a
//!   token written as byte tokens (Gemma 4).
//! - The same with scores instead of merges, as in SentencePiece (Gemma 3, Llama 2).
//! - A byte-level byte-pair encoding after a pre-tokenizer (Llama 3, SmolLM2, Qwen).
//!
//! A tokenizer is built from a [`Vocab`]; this crate reads no files.

mod bpe;
mod byte_alphabet;
mod chars;
mod classes;
mod decode;
mod error;
mod hash;
mod joints;
mod kind;
mod marker;
mod merge_list;
mod merges;
mod pre_tokenizer;
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
