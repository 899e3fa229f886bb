//! Tokens with a role.

use rullama_tokenizer::Tokenizer;

use crate::support::{REAL, tiny};

#[test]
fn roles_in_the_gemma_4_vocabulary() {
    let tokenizer = &REAL.tokenizer;
    assert_eq!(tokenizer.token_count(), 262_144);
    assert_eq!(tokenizer.bos(), Some(2));
    assert_eq!(tokenizer.unknown(), Some(3));
    assert_eq!(tokenizer.padding(), Some(0));
    assert_eq!(tokenizer.mask(), Some(4));
    assert_eq!(tokenizer.eot(), Some(106));
    assert_eq!(tokenizer.end_of_generation(), [1, 50, 106]);
    assert!(tokenizer.is_end(106));
    assert!(!tokenizer.is_end(212));
    assert!(tokenizer.suppressed().is_empty());
    for (text, id) in
        [("<|turn>", 105), ("\n\n", 108), ("▁", 236743), ("<unused3>", 9), ("</s>", 212)]
    {
        assert_eq!(tokenizer.id_of(text), Some(id));
        assert_eq!(tokenizer.token_text(id), Some(text));
    }
    assert_eq!(tokenizer.id_of("no such token"), None);
    assert_eq!(tokenizer.token_text(262_144), None);
}

#[test]
fn unwanted_tokens() {
    let unwanted = REAL.tokenizer.unwanted();
    // 6,227 unused tokens, 7 of media, <pad>, <bos>, <unk>, <mask>, <|turn>.
    assert_eq!(unwanted.len(), 6_227 + 12);
    assert!(unwanted.is_sorted());
    for id in [0, 2, 3, 4, 6, 105, 255_999, 256_000, 258_880, 258_884, 262_143] {
        assert!(unwanted.contains(&id), "{id}");
    }
    for id in [1, 5, 48, 50, 98, 100, 106, 107, 168, 238] {
        assert!(!unwanted.contains(&id), "{id}");
    }
}

#[test]
fn roles_named_by_the_file_are_added() {
    let mut vocab =
        tiny(&[("<turn|>", 3), ("<|tool_response>", 4), ("</s>", 1), ("<unused1>", 1), ("x", 5)]);
    vocab.eos = Some(4);
    vocab.eot = Some(5);
    vocab.eos_ids = vec![6, 11, 6];
    vocab.suppress = vec![9, 8, 9];
    let tokenizer = Tokenizer::new(&vocab).expect("valid");
    assert_eq!(tokenizer.end_of_generation(), [1, 4, 5, 6, 10, 11]);
    assert_eq!(tokenizer.suppressed(), [8, 9]);
    assert_eq!(tokenizer.unwanted(), [0, 2, 3, 8, 9, 13, 14]);
    // A normal token that ends generation is still produced when encoding text.
    assert_eq!(tokenizer.encode("abac", rullama_tokenizer::Special::None), [7, 4, 6]);
}
