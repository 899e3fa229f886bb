//! The vocabularies under test.

use std::sync::LazyLock;

use rullama_tokenizer::{Tokenizer, Vocab};

use crate::{gguf::{V, read}, reference::Reference};

/// A tokenizer, the slow twin made from the same vocabulary, and the vocabulary.
pub(crate) struct Subject {
    pub(crate) vocab: Vocab<'static>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) reference: Reference,
}

/// Gemma 4's vocabulary.
pub(crate) static REAL: LazyLock<Subject> =
    LazyLock::new(|| subject(&rullama_testkit::real_vocabulary()));

/// The 640 tokens of the golden models.
pub(crate) static SMALL: LazyLock<Subject> =
    LazyLock::new(|| subject(&rullama_testkit::golden("gguf/micro-e2b-Q8_0.gguf")));

fn subject(file: &[u8]) -> Subject {
    let map: &'static _ = Box::leak(Box::new(read(file)));
    let s = |k: &str| match &map[&format!("tokenizer.ggml.{k}")] { V::S(v) => v.iter().map(String::as_str).collect::<Vec<&'static str>>(), _ => panic!() };
    let n = |k: &str| match map.get(&format!("tokenizer.ggml.{k}")) { Some(V::N(v)) => Some(*v as u32), None => None, _ => panic!() };
    let a = |k: &str| match map.get(&format!("tokenizer.ggml.{k}")) { Some(V::I(v)) => v.iter().map(|&v| v as i32).collect::<Vec<_>>(), None => vec![], _ => panic!() };
    let vocab = Vocab {
        tokens: s("tokens"),
        types: a("token_type"),
        merges: s("merges"),
        bos: n("bos_token_id"),
        eos: n("eos_token_id"),
        eos_ids: vec![],
        eot: n("eot_token_id"),
        unknown: n("unknown_token_id"),
        padding: n("padding_token_id"),
        mask: n("mask_token_id"),
        suppress: vec![],
        score_count: None,
    };
    let t = std::time::Instant::now();
    let tokenizer = Tokenizer::new(&vocab).expect("the vocabulary is sound");
    println!("load {:?}", t.elapsed());
    let reference = Reference::new(&vocab);
    Subject { vocab, tokenizer, reference }
}
