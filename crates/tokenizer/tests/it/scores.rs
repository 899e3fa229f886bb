//! SentencePiece vocabularies: scores instead of merges.

use std::{collections::HashMap, sync::LazyLock};

use proptest::prelude::*;
use rullama_testkit::golden;
use rullama_tokenizer::{
    Render, Span,
    Special::{self, None, Parse, UserDefined},
    Tokenizer, Vocab,
};
use serde_json::Value;

use crate::support::{REAL, golden_vocabulary};

#[test]
fn golden_cases_of_small_vocabularies() {
    for (name, count) in [("micro-g3", 48), ("deep-g3", 48)] {
        let (_, tokenizer) = golden_vocabulary(name);
        let file: Value =
            serde_json::from_slice(&golden(&format!("tokenizer/{name}.json"))).expect("JSON");
        assert_eq!(tokenizer.begin(), Some(2));
        let cases = file["cases"].as_array().expect("cases");
        assert_eq!(cases.len(), count, "{name}");
        for case in cases {
            let text = case["text"].as_str().expect("text");
            let ids = |key: &str| -> Vec<u32> {
                let ids = case.get(key).unwrap_or(&case["ids"]);
                serde_json::from_value(ids.clone()).expect("ids")
            };
            let encode = |special| [&[2][..], &tokenizer.encode(text, special)].concat();
            assert_eq!(encode(Parse), ids("ids"), "{name}: {text:?}");
            assert_eq!(encode(UserDefined), ids("ids_no_special"), "{name}: {text:?}");
            for (key, render) in [("decoded", Render::Plain), ("decoded_special", Render::All)] {
                assert_eq!(
                    tokenizer.decode(&ids("ids"), render),
                    case[key].as_str().expect("text")
                );
            }
        }
    }
}

/// Gemma 3's vocabulary, derived from Gemma 4's: scores fall with the id. With `converted`, whitespace runs are
/// user-defined tokens, as llama.cpp converts them; otherwise all are normal, as Ollama does.
fn gemma3(converted: bool) -> (Vocab<'static>, Tokenizer) {
    let mut vocab = Vocab {
        model: Some("llama"),
        pre: Some("default"),
        add_bos: Some(true),
        add_space_prefix: Some(false),
        merges: Vec::new(),
        ..REAL.vocab.clone()
    };
    let score = |id: usize| match id {
        494.. => 494.0 - id as f32,
        107..168 if !converted => 0.0,
        _ => -1000.0,
    };
    vocab.scores = Some((0..vocab.tokens.len()).map(score).collect::<Vec<_>>().leak());
    for id in 107..168 {
        if converted {
            vocab.tokens[id] = vocab.tokens[id].replace('▁', " ").leak();
            vocab.types[id] = 4;
        }
    }
    let tokenizer = Tokenizer::new(&vocab).expect("valid");
    (vocab, tokenizer)
}

static CONVERTED: LazyLock<(Vocab<'static>, Tokenizer)> = LazyLock::new(|| gemma3(true));
static OLLAMA: LazyLock<(Vocab<'static>, Tokenizer)> = LazyLock::new(|| gemma3(false));

#[test]
fn the_gemma_4_vocabulary_gives_the_same_ids_with_scores() {
    let read = |ext: &str| {
        String::from_utf8(golden(&format!("tokenizer/ggml-vocab-gemma-4.gguf.{ext}")))
            .expect("UTF-8")
    };
    let (texts, lines) = (read("inp"), read("out"));
    let mut count = 0;
    for (text, line) in texts.split("\n__ggml_vocab_test__\n").zip(lines.lines()) {
        let want: Vec<u32> =
            line.split_whitespace().map(|id| id.parse().expect("a number")).collect();
        for (_, tokenizer) in [&*CONVERTED, &*OLLAMA] {
            assert_eq!(tokenizer.encode(text, UserDefined), want, "{text:?}");
            assert_eq!(tokenizer.decode(&want, Render::Plain), text);
        }
        count += 1;
    }
    assert_eq!(count, 46);
}

/// Whitespace runs that a file types as user-defined are still recognised in user text, also across the boundary to the
/// template.
#[test]
fn whitespace_runs_in_user_text() {
    for (_, tokenizer) in [&*CONVERTED, &*OLLAMA] {
        for special in [None, UserDefined, Parse] {
            assert_eq!(tokenizer.encode("a\n\nb", special), [236746, 108, 236763]);
            assert_eq!(tokenizer.encode(&"\n".repeat(33), special), [137, 108]);
            assert_eq!(tokenizer.encode(&" ".repeat(64), special), [167, 167, 138]);
        }
        let spans = [Span::Text("a\n"), Span::Template("\n"), Span::Text("\nb")];
        assert_eq!(tokenizer.encode_spans(&spans), [236746, 109, 236763]);
    }
}

#[test]
fn space_prefix() {
    let mut vocab = crate::support::tiny(&[("▁a", 1), ("</s>", 3)]);
    vocab.model = Some("llama");
    vocab.merges.clear();
    let scores: Vec<f32> = (0..vocab.tokens.len()).map(|id| -(id as f32)).collect();
    vocab.scores = Some(&scores);
    let tokenizer = Tokenizer::new(&vocab).expect("valid");
    // Also after special tokens, but not before an empty text.
    assert_eq!(tokenizer.encode("a</s>a", Parse), [10, 11, 10]);
    assert_eq!(tokenizer.encode("</s></s>", Parse), [11, 11]);
    assert_eq!(tokenizer.encode(" a", Parse), [9, 4]);
    assert_eq!(tokenizer.encode("", Parse), [0u32; 0]);
    assert_eq!(tokenizer.decode(&[10, 5], Render::Plain), "ab");
    assert_eq!(tokenizer.decode(&[9, 4], Render::Plain), " a");
    let mut stream = tokenizer.stream(Render::Plain);
    assert_eq!(stream.push(10), " a", "generated text continues the prompt");
    vocab.add_space_prefix = Some(false);
    let tokenizer = Tokenizer::new(&vocab).expect("valid");
    assert_eq!(tokenizer.encode("a</s>a", Parse), [4, 11, 4]);
}

#[test]
fn bos_and_eos() {
    let mut vocab = CONVERTED.0.clone();
    vocab.add_bos = Some(false);
    vocab.add_eos = Some(true);
    let tokenizer = Tokenizer::new(&vocab).expect("valid");
    assert_eq!((tokenizer.begin(), tokenizer.end()), (Option::None, Some(1)));
    assert_eq!(tokenizer.encode_prompt(&[Span::Template("a")]), [236746]);
    assert_eq!((CONVERTED.1.begin(), CONVERTED.1.end()), (Some(2), Option::None));
    assert_eq!(CONVERTED.1.encode_prompt(&[Span::Template("<bos>a")]), [2, 236746]);
    // Gemma 4's files say that no token is added, since the template writes it.
    assert_eq!(REAL.tokenizer.begin(), Some(2));
}

/// A slow reference that follows the definition literally.
struct Reference {
    tokens: HashMap<&'static str, u32>,
    vocab: &'static Vocab<'static>,
}

impl Reference {
    fn new(vocab: &'static Vocab<'static>) -> Self {
        Self { tokens: vocab.tokens.iter().copied().zip(0..).collect(), vocab }
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        let specials = self
            .vocab
            .tokens
            .iter()
            .zip(0u32..)
            .filter(|(_, id)| self.vocab.types[*id as usize] == 4);
        let mut specials: Vec<(&str, u32)> = specials.map(|(text, id)| (*text, id)).collect();
        specials.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        self.split(text, &specials)
    }

    /// Splits at all occurrences of special tokens, longest token first.
    fn split(&self, text: &str, specials: &[(&str, u32)]) -> Vec<u32> {
        let Some(((marker, id), shorter)) = specials.split_first() else { return self.merge(text) };
        let mut ids = Vec::new();
        for (i, part) in text.split(marker).enumerate() {
            if i > 0 {
                ids.push(*id);
            }
            if !part.is_empty() {
                ids.extend(self.split(part, shorter));
            }
        }
        ids
    }

    fn merge(&self, text: &str) -> Vec<u32> {
        let mut symbols: Vec<String> = text.replace(' ', "▁").chars().map(String::from).collect();
        let scores = self.vocab.scores.expect("scores");
        loop {
            let mut best: Option<(f32, usize)> = Option::None;
            for right in 1..symbols.len() {
                let joined = format!("{}{}", symbols[right - 1], symbols[right]);
                let Some(&id) = self.tokens.get(joined.as_str()) else { continue };
                let score = scores[id as usize];
                if self.vocab.types[id as usize] == 1 && best.is_none_or(|(other, _)| score > other)
                {
                    best = Some((score, right));
                }
            }
            let Some((_, right)) = best else { break };
            let tail = symbols.remove(right);
            symbols[right - 1] += &tail;
        }
        let byte = |b: u8| self.tokens[format!("<0x{b:02X}>").as_str()];
        let ids = |symbol: &String| match self.tokens.get(symbol.as_str()) {
            Some(id) => vec![*id],
            Option::None => symbol.bytes().map(byte).collect(),
        };
        symbols.iter().flat_map(ids).collect()
    }
}

proptest! {
    #[test]
    fn matches_the_slow_reference(text in text()) {
        static REFERENCES: LazyLock<[(Reference, &Tokenizer); 2]> = LazyLock::new(|| {
            [&*CONVERTED, &*OLLAMA].map(|(vocab, tokenizer)| (Reference::new(vocab), tokenizer))
        });
        for (reference, tokenizer) in &*REFERENCES {
            let want = reference.encode(&text);
            prop_assert_eq!(tokenizer.encode(&text, Special::UserDefined), &*want);
            prop_assert_eq!(tokenizer.encode(&text, Special::None), &*want);
            prop_assert_eq!(tokenizer.decode(&want, Render::Plain), text.replace('▁', " "));
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-zA-Z0-9]{1,8}",
        ("[ \t\n]", 1..70_usize).prop_map(|(blank, n)| blank.repeat(n)),
        prop::sample::select(&[" the", "’s", "你好", "🦙", "e\u{301}", "....", "ав", "▁"][..])
            .prop_map(String::from),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

/// A quadratic encoder would take minutes for these.
#[test]
fn very_long_texts() {
    for unit in ["a", " ", "\n", "ab", "<", "x  y", " \n"] {
        let text = unit.repeat(100_000);
        let ids = CONVERTED.1.encode(&text, Special::Parse);
        assert_eq!(CONVERTED.1.decode(&ids, Render::Plain), text);
    }
}
