//! The other side of the race: the same vocabulary as the `tokenizers` crate reads it.

use rullama_tokenizer::Vocab;
use serde_json::{Map, Value, json};

/// The vocabulary as a `tokenizer.json`.
pub(crate) fn tokenizer_json(vocab: &Vocab<'_>) -> Vec<u8> {
    let ids: Map<String, Value> = vocab
        .tokens
        .iter()
        .zip(0..)
        .map(|(text, id)| (text.to_string(), Value::from(id)))
        .collect();
    let special = |id: usize| {
        json!({
            "id": id, "content": vocab.tokens[id], "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true,
        })
    };
    let specials =
        (0..vocab.tokens.len()).filter(|&id| matches!(vocab.types[id], 2..=4)).map(special);
    let merges = vocab.merges.iter().map(|merge| {
        let (left, right) = merge.split_once(' ').expect("a merge has a space");
        json!([left, right])
    });
    let file = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": specials.collect::<Value>(),
        "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": null,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": ids, "merges": merges.collect::<Value>(),
        },
    });
    serde_json::to_vec(&file).expect("JSON of strings and numbers")
}

/// Reads a `tokenizer.json`.
pub(crate) fn load(json: &[u8]) -> tokenizers::Tokenizer {
    tokenizers::Tokenizer::from_bytes(json).expect("the file is sound")
}

/// The ids of `text`.
pub(crate) fn encode(tokenizer: &tokenizers::Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode_fast(text, false).expect("any text can be encoded").get_ids().to_vec()
}
