//! The vocabularies under test.

use std::sync::LazyLock;

use rullama_source::Bytes;
use rullama_tokenizer::{Tokenizer, Vocab};

use crate::{gguf, reference::Reference};

/// A vocabulary with its tokenizer and its slow reference.
pub(crate) struct Subject {
    pub(crate) vocab: Vocab<'static>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) reference: Reference,
}

/// Gemma 4's vocabulary.
pub(crate) static REAL: LazyLock<Subject> =
    LazyLock::new(|| subject(rullama_testkit::real_vocabulary()));

/// The 640 tokens of the golden models.
pub(crate) static SMALL: LazyLock<Subject> =
    LazyLock::new(|| subject(rullama_testkit::golden("gguf/micro-e2b-Q8_0.gguf").into()));

fn subject(file: Bytes) -> Subject {
    let vocab = vocabulary(file);
    let tokenizer = Tokenizer::new(&vocab).expect("the vocabulary is valid");
    Subject { reference: Reference::new(&vocab), tokenizer, vocab }
}

/// The vocabulary of a file, leaked to be `'static`.
pub(crate) fn vocabulary(file: Bytes) -> Vocab<'static> {
    let file = Box::leak(Box::new(gguf::open(file)));
    gguf::vocab(file).expect("the file has a vocabulary")
}

/// The vocabulary of a golden file `NAME-vocab.gguf` and its tokenizer.
pub(crate) fn golden_vocabulary(name: &str) -> (Vocab<'static>, Tokenizer) {
    let vocab = vocabulary(rullama_testkit::golden(&format!("tokenizer/{name}-vocab.gguf")).into());
    let tokenizer = Tokenizer::new(&vocab).expect("the vocabulary is valid");
    (vocab, tokenizer)
}

/// A vocabulary of a few tokens, for cases that the others do not cover.
///
/// Ids: 0 to 3 are `<pad>`, `<eos>`, `<bos>`, `<unk>`; then `a`, `b`, `c`, `ab`, `▁`, `▁▁`; then `extra`.
pub(crate) fn tiny(extra: &[(&'static str, i64)]) -> Vocab<'static> {
    let tokens = [
        ("<pad>", 3),
        ("<eos>", 3),
        ("<bos>", 3),
        ("<unk>", 2),
        ("a", 1),
        ("b", 1),
        ("c", 1),
        ("ab", 1),
        ("▁", 1),
        ("▁▁", 1),
    ];
    let all = tokens.iter().chain(extra);
    Vocab {
        tokens: all.clone().map(|(text, _)| *text).collect(),
        types: all.map(|(_, kind)| *kind).collect(),
        merges: vec!["a b", "▁ ▁"],
        ..Vocab::default()
    }
}
