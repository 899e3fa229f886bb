//! Decoding of ids to text.

use rullama_tokenizer::{
    Render::{self, All, Markers, Plain},
    Tokenizer,
};

use crate::support::{REAL, tiny};

#[track_caller]
fn check(ids: &[u32], render: Render, want: &str) {
    assert_eq!(REAL.tokenizer.decode(ids, render), want, "{ids:?} {render:?}");
}

#[test]
fn spaces_and_bytes() {
    check(&[26352], Plain, " Hello");
    check(&[138, 23391, 138], Plain, "  hello  ");
    check(&[478, 397, 404, 391], Plain, "🦙");
    check(&[478, 397, 9259], Plain, "\u{FFFD}Hello");
    check(&[479, 238, 397], Plain, "\u{FFFD}\0\u{FFFD}");
    check(&[168, 9], Plain, "<table><unused3>");
    check(&[], Plain, "");
    check(&[262_144, u32::MAX], All, "");
}

#[test]
fn special_tokens() {
    let ids = [2, 105, 100, 9259, 101, 48, 52, 49, 51, 50, 106, 1];
    check(&ids, Plain, "<|channel>Hello<channel|><|tool_call><|\"|><tool_call|><tool_response|>");
    check(&ids, Markers, "<|channel>Hello<channel|><|tool_call><|\"|><tool_call|><tool_response|>");
    let all = "<bos><|turn><|channel>Hello<channel|><|tool_call><|\"|><tool_call|><tool_response|><|tool_response><turn|><eos>";
    check(&ids, All, all);
}

/// Some files type every special token as control.
#[test]
fn markers_are_visible_whatever_their_type() {
    let vocab = tiny(&[
        ("<|channel>", 3),
        ("<|\"|>", 3),
        ("<|turn>", 3),
        ("<|tool_response>", 3),
        ("x", 5),
    ]);
    let tokenizer = Tokenizer::new(&vocab).expect("valid");
    let ids = [2, 10, 4, 11, 12, 13, 14, 3];
    assert_eq!(tokenizer.decode(&ids, Plain), "a");
    assert_eq!(tokenizer.decode(&ids, Markers), "<|channel>a<|\"|>");
    assert_eq!(tokenizer.decode(&ids, All), "<bos><|channel>a<|\"|><|turn><|tool_response><unk>");
}

#[test]
fn a_stream_never_yields_partial_characters() {
    let mut stream = REAL.tokenizer.stream(Plain);
    let pieces: Vec<_> =
        [9259, 478, 397, 404, 391, 106, 478].into_iter().map(|id| stream.push(id)).collect();
    assert_eq!(pieces, ["Hello", "", "", "", "🦙", "", ""]);
    assert_eq!(stream.finish(), "\u{FFFD}");
    assert_eq!(stream.finish(), "");
}

#[test]
fn all_pieces_of_the_gemma_4_vocabulary() {
    for (id, (text, kind)) in (0..).zip(REAL.vocab.tokens.iter().zip(&REAL.vocab.types)) {
        let piece = REAL.tokenizer.piece(id, All);
        match kind {
            6 => assert_eq!(*piece, [(id - 238) as u8]),
            _ => assert_eq!(*piece, *text.replace('▁', " ").as_bytes()),
        }
        let hidden = *kind == 3 || *text == "<|tool_response>";
        assert_eq!(REAL.tokenizer.piece(id, Plain).is_empty(), hidden, "{text}");
    }
}
