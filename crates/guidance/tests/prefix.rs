//! Constrained replies that continue a text.

use rullama_guidance::{Format, GuidanceError, TextFormat, TokenTexts, Vocabulary};
use serde_json::json;

/// Single bytes but for `z`, a few longer tokens, and an end.
fn vocabulary() -> Vocabulary {
    let bytes = (0..=127_u8).filter(|byte| *byte != b'z').map(|byte| vec![byte]);
    let mut texts = vec![TokenTexts::marker(b"end")];
    texts.extend(bytes);
    texts.extend(["tr", "ue", "{\"a\"", "\": "].map(Vec::from));
    Vocabulary::new(&TokenTexts { texts, ends: vec![0] }).expect("a vocabulary")
}

#[test]
fn a_reply_continues_the_text_it_begins_with() {
    let vocabulary = vocabulary();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "boolean" } }, "required": ["a"], "additionalProperties": false });
    let format = vocabulary.compile(&Format::json(schema)).expect("a format");
    let mut allowed = Vec::new();
    for prefix in ["{\"a\": t", "{\"a\"", "{\"a\": true"] {
        let mut reply = format.clone();
        assert!(!reply.advance(prefix).expect("it fits"), "{prefix} is not the whole reply");
        reply.mask().expect("a mask");
        // Byte `b` is token `b + 1`; those after `z`, which is missing, are token `b`.
        let id = |byte: u8| u32::from(byte) + u32::from(byte < b'z');
        let next = (0..128).filter(|byte| *byte != b'z' && reply.allows(id(*byte)));
        allowed.push(next.map(char::from).filter(|c| !c.is_whitespace()).collect::<String>());
    }
    assert_eq!(allowed, ["r", ":", "}"]);
    let mut whole = format.clone();
    assert!(whole.advance("{\"a\": true}").expect("it fits"));
    whole.mask().expect("a mask");
    assert!(whole.allows(0), "only the end can follow");
    assert!(!format.clone().advance("").expect("nothing fits anything"));
}

#[test]
fn a_text_that_no_reply_begins_with_is_refused() {
    let vocabulary = vocabulary();
    let text = TextFormat::Regex { pattern: "ab*z?".into(), flags: String::new() };
    let format = Format { text: Some(text), calls: None };
    let format = vocabulary.compile(&format).expect("a format");
    // The last one has a byte that no token has.
    for prefix in ["b", "abc", "Hello", "abz"] {
        let refused = format.clone().advance(prefix);
        assert!(matches!(refused, Err(GuidanceError::Prefix)), "{prefix}: {refused:?}");
    }
    assert!(format.clone().advance("abb").is_ok());
}
