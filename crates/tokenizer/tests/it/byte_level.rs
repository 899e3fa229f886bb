//! Byte-level BPE: known ids, pieces of pre-tokenizers, and properties for any text.

use std::{collections::HashMap, sync::LazyLock};

use proptest::prelude::*;
use rullama_testkit::{golden, smollm2_vocabulary};
use rullama_tokenizer::{
    Render, Span,
    Special::{None, Parse, UserDefined},
    Tokenizer, TokenizerError, Vocab,
};
use serde_json::Value;

use crate::support::{golden_vocabulary, vocabulary};

static SMOLLM2: LazyLock<Tokenizer> = LazyLock::new(|| {
    Tokenizer::new(&vocabulary(smollm2_vocabulary())).expect("the vocabulary is valid")
});

fn json(name: &str) -> Value {
    serde_json::from_slice(&golden(&format!("tokenizer/{name}.json"))).expect("JSON")
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).expect("ids")
}

#[track_caller]
fn check_cases(tokenizer: &Tokenizer, cases: &Value, bos: &[u32], count: usize) {
    let cases = cases.as_array().expect("cases");
    assert_eq!(cases.len(), count);
    for case in cases {
        let text = case["text"].as_str().expect("text");
        let want = ids(&case["ids"]);
        let got = [bos, &tokenizer.encode(text, Parse)].concat();
        assert_eq!(got, want, "{text:?}");
        // The small vocabularies' files do not have the key.
        if case.get("ids_no_special").is_some() || !text.contains("<|") {
            let unparsed = [bos, &tokenizer.encode(text, UserDefined)].concat();
            assert_eq!(unparsed, case.get("ids_no_special").map_or(want.clone(), ids), "{text:?}");
        }
        let texts: Vec<_> = want.iter().map(|id| tokenizer.token_text(*id)).collect();
        let tokens: Vec<_> =
            case["tokens"].as_array().expect("tokens").iter().map(Value::as_str).collect();
        assert_eq!(texts, tokens, "{text:?}");
        let decoded = case.get("decoded_special").unwrap_or(&case["decoded"]);
        assert_eq!(tokenizer.decode(&want, Render::All), decoded.as_str().expect("text"));
    }
}

#[test]
fn golden_cases_of_small_vocabularies() {
    for name in ["micro-llama", "micro-llama3", "micro-qwen2"] {
        let (_, tokenizer) = golden_vocabulary(name);
        let file = json(name);
        let bos: Vec<u32> = tokenizer.begin().into_iter().collect();
        assert_eq!(!bos.is_empty(), file["add_bos"].as_bool().expect("a flag"), "{name}");
        check_cases(&tokenizer, &file["cases"], &bos, 24);
    }
}

#[test]
fn golden_cases_of_smollm2() {
    let file = json("smollm2");
    check_cases(&SMOLLM2, &file["tokenizer"], &[], 53);
    assert_eq!(SMOLLM2.begin(), Option::None);
    assert_eq!(SMOLLM2.bos(), Some(1));
    assert_eq!(SMOLLM2.end_of_generation(), [0, 2]);
    for case in file["chat"].as_array().expect("cases") {
        let prompt = [Span::Template(case["prompt"].as_str().expect("text"))];
        assert_eq!(SMOLLM2.encode_prompt(&prompt), ids(&case["ids"]));
    }
}

#[test]
fn user_text_yields_no_markers() {
    let ids = SMOLLM2.encode_spans(&[Span::Template("<|im_start|>"), Span::Text("<|im_end|>")]);
    assert_eq!(ids, [&[1][..], &SMOLLM2.encode("<|im_end|>", None)].concat());
    assert!(!SMOLLM2.encode("<|im_end|>", None).contains(&2));
}

#[test]
fn bytes_without_a_token_are_dropped() {
    assert_eq!(SMOLLM2.encode("a\u{4}b", None), [81, 82]);
}

/// A vocabulary of all bytes with one merge, so that tokens show where text was split.
fn bytes_only(pre: &str) -> Result<(Vec<String>, Tokenizer), TokenizerError> {
    let printable = |b: u32| matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = 0x100..;
    let mut tokens: Vec<String> = (0..256)
        .map(|b| if printable(b) { b } else { others.next().expect("enough") })
        .map(|code| String::from(char::from_u32(code).expect("a character")))
        .collect();
    tokens.push("aa".into());
    let vocab = Vocab {
        model: Some("gpt2"),
        pre: Some(pre),
        tokens: tokens.iter().map(String::as_str).collect(),
        types: vec![1; tokens.len()],
        merges: vec!["a a"],
        ..Vocab::default()
    };
    let tokenizer = Tokenizer::new(&vocab)?;
    Ok((tokens, tokenizer))
}

#[test]
fn unknown_pre_tokenizers_are_rejected_by_name() {
    let name = "made-up".to_owned();
    let error = bytes_only(&name).expect_err("refused");
    assert!(error.to_string().contains("\"made-up\""), "{error}");
    assert_eq!(error, TokenizerError::UnknownPreTokenizer { name });
    let (mut vocab, _) = golden_vocabulary("micro-llama");
    vocab.pre = Option::None;
    assert_eq!(Tokenizer::new(&vocab).err(), Some(TokenizerError::NoPreTokenizer));
    vocab.model = Some("bert");
    let model = "bert".into();
    assert_eq!(Tokenizer::new(&vocab).err(), Some(TokenizerError::UnknownModel { model }));
}

#[test]
fn pieces_match_the_regular_expressions() {
    let file = json("splits");
    let texts = file["texts"].as_array().expect("texts");
    assert_eq!(texts.len(), 500);
    for name in ["gpt-2", "smollm", "llama-bpe", "qwen2", "default"] {
        let (_, tokenizer) = bytes_only(name).expect("valid");
        for (text, want) in texts.iter().zip(file[name].as_array().expect("pieces")) {
            let text = text.as_str().expect("text");
            let mut chars = text.chars();
            let lengths: Vec<usize> = serde_json::from_value(want.clone()).expect("lengths");
            let bytes = lengths.iter().map(|n| chars.by_ref().take(*n).map(char::len_utf8).sum());
            assert_eq!(
                tokenizer.pre_tokenize(text),
                bytes.collect::<Vec<usize>>(),
                "{name}: {text:?}"
            );
        }
    }
}

#[test]
fn pieces_that_are_tokens_are_not_merged() {
    let vocab = |pre| {
        let (mut tokens, _) = bytes_only(pre).expect("valid");
        tokens.push("abc".into());
        let texts: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let vocab = Vocab {
            model: Some("gpt2"),
            pre: Some(pre),
            types: vec![1; texts.len()],
            tokens: texts,
            merges: vec!["a a"],
            ..Vocab::default()
        };
        Tokenizer::new(&vocab).expect("valid").encode("abc abc", None)
    };
    let apart: Vec<u32> = "abc abc".bytes().map(u32::from).collect();
    assert_eq!(vocab("qwen2"), apart);
    assert_eq!(vocab("llama-bpe"), [&[257][..], &apart[3..]].concat());
}

/// Any Unicode, with a bias to the character classes of pre-tokenizers.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-zA-Z0-9]{1,8}",
        "[ \t\n\r']{1,5}",
        prop::sample::select(
            &["'ll", "'S", " the", "\u{A0}", "½", "漢字", "👨‍👩‍👧", "e\u{301}", "<|im_end|>"][..]
        )
        .prop_map(String::from),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// A slow reference: symbols as strings, a scan for each merge.
fn merge(vocab: &Vocab<'_>, piece: &str) -> Vec<u32> {
    static CHARS: LazyLock<Vec<String>> = LazyLock::new(|| bytes_only("gpt-2").expect("valid").0);
    let ranks: HashMap<&str, usize> = vocab.merges.iter().copied().zip(0..).collect();
    let mut symbols: Vec<String> = piece.bytes().map(|b| CHARS[usize::from(b)].clone()).collect();
    loop {
        let rank = |i: &usize| {
            Some((ranks.get(format!("{} {}", symbols[i - 1], symbols[*i]).as_str())?, *i))
        };
        let Some((_, right)) = (1..symbols.len()).filter_map(|i| rank(&i)).min() else { break };
        let tail = symbols.remove(right);
        symbols[right - 1] += &tail;
    }
    let id = |symbol: &String| vocab.tokens.iter().position(|token| token == symbol);
    symbols.iter().filter_map(id).map(|id| id as u32).collect()
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(text in text()) {
        for pre in ["gpt-2", "smollm", "llama-bpe", "qwen2", "default"] {
            let (_, tokenizer) = bytes_only(pre).expect("valid");
            let ids = tokenizer.encode(&text, None);
            prop_assert_eq!(tokenizer.decode(&ids, Render::Plain), &*text);
            let mut stream = tokenizer.stream(Render::Plain);
            let mut streamed: String = ids.iter().map(|id| stream.push(*id)).collect();
            streamed += &stream.finish();
            prop_assert_eq!(&streamed, &text);
            prop_assert_eq!(tokenizer.pre_tokenize(&text).iter().sum::<usize>(), text.len());
        }
    }

    #[test]
    fn matches_the_slow_reference(text in text()) {
        static SUBJECTS: LazyLock<[(Vocab<'static>, Tokenizer); 3]> =
            LazyLock::new(|| ["micro-llama", "micro-llama3", "micro-qwen2"].map(golden_vocabulary));
        for (vocab, tokenizer) in &*SUBJECTS {
            let mut rest = &*text;
            let mut want = Vec::new();
            for len in tokenizer.pre_tokenize(&text) {
                let (piece, after) = rest.split_at(len);
                want.extend(merge(vocab, piece));
                rest = after;
            }
            prop_assert_eq!(tokenizer.encode(&text, None), want);
        }
    }
}
