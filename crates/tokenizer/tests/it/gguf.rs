//! Reads a vocabulary from a GGUF file.

use std::rc::Rc;

use rullama_gguf::{Gguf, GgufError, Optional};
use rullama_source::{Bytes, MemorySource};
use rullama_tokenizer::Vocab;

/// Opens a file in memory.
pub(crate) fn open(bytes: Bytes) -> Gguf {
    let source = Rc::new(MemorySource::new("vocabulary", bytes));
    pollster::block_on(Gguf::open(source)).expect("the file is valid")
}

/// The vocabulary, its texts borrowed from the file.
pub(crate) fn vocab(file: &Gguf) -> Result<Vocab<'_>, GgufError> {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let strings = |name: &str| file.strings(&key(name)).map(|texts| texts.iter().collect());
    let text = |name: &str| file.str(&key(name)).optional();
    let flag = |name: &str| file.bool(&key(name)).optional();
    let integers = |name: &str| file.integers(&key(name)).optional().map(Option::unwrap_or_default);
    let id = |name: &str| file.u32(&key(name)).optional();
    Ok(Vocab {
        model: text("model")?,
        pre: text("pre")?,
        add_bos: flag("add_bos_token")?,
        add_eos: flag("add_eos_token")?,
        add_space_prefix: flag("add_space_prefix")?,
        tokens: strings("tokens")?,
        types: integers("token_type")?,
        scores: file.floats(&key("scores")).optional()?,
        merges: strings("merges").optional()?.unwrap_or_default(),
        bos: id("bos_token_id")?,
        eos: id("eos_token_id")?,
        eos_ids: integers("eos_token_ids")?,
        eot: id("eot_token_id")?,
        unknown: id("unknown_token_id")?,
        padding: id("padding_token_id")?,
        mask: id("mask_token_id")?,
        suppress: integers("suppress_tokens")?,
    })
}
