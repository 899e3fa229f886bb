//! Properties for any text and any ids.

use proptest::prelude::*;
use rullama_tokenizer::{Render, Span, Special};

use crate::support::{REAL, SMALL, Subject};

/// Any Unicode, with a bias to characters that are difficult for tokenizers.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-zA-Z0-9]{1,8}",
        ("[ \t\n\r]", 1..70_usize).prop_map(|(blank, n)| blank.repeat(n)),
        prop::sample::select(&PARTS[..]).prop_map(String::from),
        "\\PC{1,4}",
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

const PARTS: [&str; 32] = [
    "<",
    "|",
    ">",
    "<|",
    "|>",
    "<turn|>",
    "<|turn>",
    "<|tool_call>",
    "<|tool_response>",
    "<|\"|>",
    "<bos>",
    "<eos>",
    "<unk>",
    "turn",
    "tool",
    "<0x41>",
    "<unused3>",
    "<table>",
    " YYYY",
    " the",
    " of the",
    "’s",
    "你好",
    "한국어",
    "🦙",
    "👨‍👩‍👧",
    "e\u{301}",
    "\u{FFFD}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "....",
    "====",
    "ав",
];

fn special() -> impl Strategy<Value = Special> {
    prop::sample::select(&[Special::Parse, Special::UserDefined, Special::None][..])
}

fn subjects() -> [&'static Subject; 2] {
    [&REAL, &SMALL]
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(text in text(), special in special()) {
        for subject in subjects() {
            let ids = subject.tokenizer.encode(&text, special);
            prop_assert_eq!(subject.tokenizer.decode(&ids, Render::All), text.replace('▁', " "));
        }
    }

    #[test]
    fn matches_the_slow_reference(text in text(), special in special()) {
        for subject in subjects() {
            let want = subject.reference.encode(&text, special);
            prop_assert_eq!(subject.tokenizer.encode(&text, special), want);
        }
    }

    #[test]
    fn user_text_yields_no_special_token(text in text()) {
        for subject in subjects() {
            for id in subject.tokenizer.encode(&text, Special::None) {
                prop_assert!([1, 6].contains(&subject.vocab.types[id as usize]), "{}", id);
            }
        }
    }

    #[test]
    fn span_boundaries_do_not_matter(texts in prop::collection::vec((text(), any::<bool>()), 0..4)) {
        let whole: String = texts.iter().map(|(text, _)| text.as_str()).collect();
        let templates: Vec<_> = texts.iter().map(|(text, _)| Span::Template(text)).collect();
        let strangers: Vec<_> = texts.iter().map(|(text, _)| Span::Text(text)).collect();
        let tokenizer = &REAL.tokenizer;
        prop_assert_eq!(tokenizer.encode_spans(&templates), tokenizer.encode(&whole, Special::Parse));
        prop_assert_eq!(tokenizer.encode_spans(&strangers), tokenizer.encode(&whole, Special::None));

        let without_markers: Vec<_> = texts.iter().map(|(text, trusted)| (text.replace('<', "≤"), trusted)).collect();
        let whole: String = without_markers.iter().map(|(text, _)| text.as_str()).collect();
        let mixed: Vec<_> = without_markers
            .iter()
            .map(|(text, trusted)| if **trusted { Span::Template(text) } else { Span::Text(text) })
            .collect();
        prop_assert_eq!(tokenizer.encode_spans(&mixed), tokenizer.encode(&whole, Special::Parse));
    }

    #[test]
    fn only_templates_yield_special_tokens(texts in prop::collection::vec((text(), any::<bool>()), 0..4)) {
        let tokenizer = &REAL.tokenizer;
        let is_special = |id: &u32| ![1, 6].contains(&REAL.vocab.types[*id as usize]);
        let spans: Vec<_> =
            texts.iter().map(|(text, trusted)| if *trusted { Span::Template(text) } else { Span::Text(text) }).collect();
        let got: Vec<_> = tokenizer.encode_spans(&spans).into_iter().filter(is_special).collect();
        let mut want = Vec::new();
        for run in texts.chunk_by(|a, b| a.1 && b.1).filter(|run| run[0].1) {
            let template: String = run.iter().map(|(text, _)| text.as_str()).collect();
            want.extend(tokenizer.encode(&template, Special::Parse).into_iter().filter(is_special));
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn a_stream_equals_decoding_at_once(
        ids in prop::collection::vec(prop_oneof![0..262_200_u32, 238..494_u32, 430..494_u32], 0..40),
        render in prop::sample::select(&[Render::Plain, Render::Markers, Render::All][..]),
    ) {
        let mut stream = REAL.tokenizer.stream(render);
        let mut got: String = ids.iter().map(|&id| stream.push(id)).collect();
        got += &stream.finish();
        prop_assert_eq!(got, REAL.tokenizer.decode(&ids, render));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Repeated words of a long text come from the cache.
    #[test]
    fn matches_the_slow_reference_on_long_texts(
        lines in prop::collection::vec(text(), 4..24),
        order in prop::collection::vec(any::<prop::sample::Index>(), 200),
        special in special(),
    ) {
        let text: String = order.iter().map(|i| format!("{} {}\n", i.get(&lines), i.index(97))).collect();
        prop_assume!(text.len() > 4096);
        for subject in subjects() {
            let want = subject.reference.encode(&text, special);
            prop_assert_eq!(subject.tokenizer.encode(&text, special), want);
        }
    }
}

/// Words that are too long for the linear scan.
#[test]
fn long_words() {
    for unit in ["a", "ab", " ", "\n", "ha", "=-", "aaab", "。", "ทำ"] {
        for count in [31, 32, 33, 34, 63, 65, 200] {
            let text = unit.repeat(count);
            let want = REAL.reference.encode(&text, Special::None);
            assert_eq!(REAL.tokenizer.encode(&text, Special::None), want, "{unit:?} {count} times");
        }
    }
}

/// A quadratic encoder would take minutes for these.
#[test]
fn very_long_words() {
    for unit in ["a", " ", "\n", "ab", "<", "x y"] {
        let text = unit.repeat(100_000);
        let ids = REAL.tokenizer.encode(&text, Special::Parse);
        assert_eq!(REAL.tokenizer.decode(&ids, Render::Plain), text);
    }
}
