//! Malformed vocabularies, each rejected with its own error, and odd ones that are accepted.

use rullama_tokenizer::{
    Render, Special, Tokenizer,
    TokenizerError::{self, *},
    Vocab,
};

use crate::support::tiny;

#[track_caller]
fn check(vocab: &Vocab<'_>, want: &TokenizerError) {
    let got = Tokenizer::new(vocab).err();
    assert_eq!(got.as_ref(), Some(want));
}

/// The tiny vocabulary with one change.
fn changed(change: impl FnOnce(&mut Vocab<'static>)) -> Vocab<'static> {
    let mut vocab = tiny(&[]);
    change(&mut vocab);
    vocab
}

#[test]
fn the_unchanged_vocabulary_is_valid() {
    let tokenizer = Tokenizer::new(&tiny(&[])).expect("valid");
    assert_eq!(tokenizer.encode("ab c  a", Special::None), [7, 8, 6, 9, 4]);
}

#[test]
fn no_tokens() {
    check(&Vocab::default(), &EmptyVocabulary);
}

#[test]
fn no_merges() {
    check(&changed(|v| v.merges.clear()), &NoMerges);
    let unmergeable = changed(|v| {
        v.merges.clear();
        v.scores = Some(&[f32::NAN; 10]);
    });
    check(&unmergeable, &NoMerges);
}

/// The tiny vocabulary plus the tokens `more`, with scores instead of merges.
fn scored(more: &[String], check: impl FnOnce(&Vocab<'_>)) {
    let mut vocab = tiny(&[]);
    vocab.merges.clear();
    vocab.tokens.extend(more.iter().map(String::as_str));
    vocab.types.resize(vocab.tokens.len(), 1);
    let scores: Vec<f32> = (0..vocab.tokens.len()).map(|id| -(id as f32)).collect();
    check(&Vocab { scores: Some(&scores), ..vocab });
}

#[test]
fn scores_instead_of_merges() {
    scored(&[], |vocab| {
        let tokenizer = Tokenizer::new(vocab).expect("valid");
        assert_eq!(tokenizer.encode("ab c  a", Special::None), [7, 8, 6, 9, 4]);
    });
}

#[test]
fn a_scored_token_that_is_too_long_is_rejected() {
    let long = "ab".repeat(1 << 17);
    let want = PieceTooLong { id: 10, bytes: long.len(), limit: 512 };
    scored(&[long], |vocab| check(vocab, &want));
}

#[test]
fn too_many_merges_by_score() {
    // All n - 1 splits of a token of n equal letters are merges.
    let letters = ('d'..='z').chain('A'..='Z').chain('!'..='/').chain('À'..='ß');
    let runs = letters.flat_map(|letter| {
        (1..=512 / letter.len_utf8()).map(move |n| String::from(letter).repeat(n))
    });
    let tokens: Vec<String> = runs.collect();
    scored(&tokens, |vocab| match Tokenizer::new(vocab) {
        Err(TooMany { array: "merges", count, limit }) => {
            assert!(count > limit && count <= limit + 511, "{count}");
        }
        other => panic!("{:?}", other.map(drop)),
    });
}

#[test]
fn arrays_of_different_lengths() {
    let mismatch = |array, count| LengthMismatch { array, count, tokens: 10 };
    check(&changed(|v| v.types.clear()), &mismatch("token types", 0));
    check(&changed(|v| v.types.push(1)), &mismatch("token types", 11));
    check(&changed(|v| v.types.truncate(9)), &mismatch("token types", 9));
    check(&changed(|v| v.scores = Some(&[0.0; 11])), &mismatch("scores", 11));
    check(&changed(|v| v.scores = Some(&[])), &mismatch("scores", 0));
}

#[test]
fn too_many_entries() {
    let limit = 1 << 23;
    let many = vec!["a"; limit + 1];
    let tokens = Vocab { tokens: many.clone(), ..Vocab::default() };
    check(&tokens, &TooMany { array: "tokens", count: limit + 1, limit });
    check(&changed(|v| v.merges = many), &TooMany { array: "merges", count: limit + 1, limit });
}

#[test]
fn too_much_text() {
    let long: &'static str = "x".repeat(1 << 24).leak();
    let vocab = changed(|v| {
        v.tokens = vec![long; 257];
        v.types = vec![1; 257];
    });
    check(&vocab, &TextTooLong { bytes: 257 << 24 });
}

#[test]
fn special_tokens_that_are_too_long() {
    let long: &'static str = "x".repeat(257).leak();
    let vocab = |kind: i64| {
        changed(|v| {
            v.tokens.push(long);
            v.types.push(kind);
        })
    };
    let id = u32::try_from(vocab(3).tokens.len() - 1).unwrap();
    for kind in [2, 3, 4] {
        check(&vocab(kind), &MarkerTooLong { id, bytes: 257, limit: 256 });
    }
    assert!(Tokenizer::new(&vocab(1)).is_ok(), "an ordinary token may be long");
}

#[test]
fn unknown_types() {
    for value in [0, 7, -1, i64::MIN, i64::MAX] {
        check(&changed(|v| v.types[4] = value), &UnknownTokenType { id: 4, value });
    }
}

#[test]
fn duplicate_tokens() {
    let twice = DuplicateToken { first: 4, second: 10, text: "a".into() };
    check(&tiny(&[("a", 1)]), &twice);
    check(&tiny(&[("a", 4)]), &twice);
    check(&tiny(&[("<bos>", 3)]), &DuplicateToken { first: 2, second: 10, text: "<bos>".into() });
}

#[test]
fn malformed_byte_tokens() {
    for text in ["<0xGG>", "<0xff>", "<0x1>", "x", "<0x100>"] {
        check(&tiny(&[(text, 6)]), &InvalidByteToken { id: 10, text: text.into() });
    }
}

#[test]
fn text_that_cannot_be_encoded() {
    let vocab = changed(|v| {
        v.tokens[3] = "x";
        v.types[3] = 1;
    });
    check(&vocab, &NoFallback { byte: 0 });
}

#[test]
fn malformed_merges() {
    for text in ["", " ", "ab", "a ", " b"] {
        let vocab = changed(|v| v.merges.push(text));
        check(&vocab, &MalformedMerge { index: 2, text: text.into() });
    }
}

#[test]
fn merges_of_unknown_pieces() {
    for (text, piece) in [
        ("x b", "x"),
        ("a x", "x"),
        ("a c", "ac"),
        ("a b c", "b c"),
        ("▁ a", "▁a"),
        ("a  ", " "),
        ("  a", " "),
    ] {
        let vocab = changed(|v| v.merges.push(text));
        match Tokenizer::new(&vocab) {
            Err(UnknownPiece { index: 2, piece: got }) => {
                let joined = text.replacen(' ', "", 1);
                assert!(got == piece || got == joined, "{text:?}: {got:?}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn merges_that_could_forge_a_special_token() {
    let forged = |text| SpecialPiece { index: 2, piece: text };
    for kind in [2, 3, 4, 5] {
        let vocab = |text, merge| {
            let mut vocab = tiny(&[(text, kind)]);
            vocab.merges.push(merge);
            vocab
        };
        check(&vocab("abc", "ab c"), &forged("abc".into()));
        let mut of_special = vocab("x", "x a");
        of_special.tokens.push("xa");
        of_special.types.push(1);
        check(&of_special, &forged("x".into()));
    }
}

#[test]
fn ids_out_of_range() {
    let past = |key, id| IdPastVocabulary { key, id, tokens: 10 };
    check(&changed(|v| v.bos = Some(10)), &past("bos_token_id", 10));
    check(&changed(|v| v.eos = Some(11)), &past("eos_token_id", 11));
    check(&changed(|v| v.eot = Some(u32::MAX)), &past("eot_token_id", u32::MAX.into()));
    check(&changed(|v| v.unknown = Some(10)), &past("unknown_token_id", 10));
    check(&changed(|v| v.padding = Some(10)), &past("padding_token_id", 10));
    check(&changed(|v| v.mask = Some(10)), &past("mask_token_id", 10));
    check(&changed(|v| v.eos_ids = vec![1, 10]), &past("eos_token_ids", 10));
    check(&changed(|v| v.eos_ids = vec![-1]), &past("eos_token_ids", -1));
    check(&changed(|v| v.suppress = vec![9, 1 << 32]), &past("suppress_tokens", 1 << 32));
    check(&changed(|v| v.suppress = vec![i64::MIN]), &past("suppress_tokens", i64::MIN));
}

#[test]
fn messages_stay_short() {
    let long: &'static str = "é".repeat(1 << 16).leak();
    let vocab = changed(|v| v.merges.push(long));
    let message = Tokenizer::new(&vocab).expect_err("no space").to_string();
    assert!(message.len() < 300, "{}", message.len());
}

#[test]
fn empty_texts_are_accepted_and_never_found() {
    for kind in 1..=5 {
        let tokenizer = Tokenizer::new(&tiny(&[("", kind), ("", kind)])).expect("accepted");
        assert_eq!(tokenizer.encode("ab", Special::Parse), [7]);
        assert!(tokenizer.encode("", Special::Parse).is_empty());
        assert_eq!(tokenizer.id_of(""), None);
        assert_eq!(tokenizer.decode(&[10, 11], Render::All), "");
    }
}

#[test]
fn the_first_merge_of_a_pair_wins() {
    let vocab = |merges: &[&'static str]| {
        let mut vocab = tiny(&[("bc", 1)]);
        vocab.merges = merges.to_vec();
        Tokenizer::new(&vocab).expect("accepted").encode("abc", Special::None)
    };
    assert_eq!(vocab(&["a b", "b c"]), [7, 6]);
    assert_eq!(vocab(&["b c", "a b"]), [4, 10]);
    assert_eq!(vocab(&["b c", "a b", "b c"]), [4, 10]);
    assert_eq!(vocab(&["a b", "b c", "a b"]), [7, 6]);
}

#[test]
fn bytes_without_a_token_become_the_unknown_token() {
    let tokenizer = Tokenizer::new(&tiny(&[("<0xC3>", 6)])).expect("accepted");
    assert_eq!(tokenizer.encode("aéb", Special::None), [4, 10, 3, 5]);
}

#[test]
fn spaces_without_a_token_become_bytes() {
    let mut vocab = tiny(&[("<0xE2>", 6), ("<0x96>", 6), ("<0x81>", 6), (" ", 1)]);
    (vocab.tokens[8], vocab.tokens[9]) = ("x", "y");
    vocab.merges.pop();
    let tokenizer = Tokenizer::new(&vocab).expect("accepted");
    assert_eq!(tokenizer.encode("a b", Special::None), [4, 10, 11, 12, 5]);
}

#[test]
fn byte_tokens_may_have_the_type_normal() {
    let tokenizer = Tokenizer::new(&tiny(&[("<0xC3>", 1), ("<0xA9>", 1)])).expect("accepted");
    assert_eq!(tokenizer.encode("é", Special::Parse), [10, 11]);
    assert_eq!(tokenizer.decode(&[10, 11], Render::Plain), "é");
}

#[test]
fn newlines_are_never_merged_with_other_characters() {
    let mut vocab = tiny(&[("\n", 1), ("\n\n", 1), ("a\n", 1)]);
    vocab.merges.extend(["\n \n", "a \n"]);
    let tokenizer = Tokenizer::new(&vocab).expect("accepted");
    assert_eq!(tokenizer.encode("a\n\na\n", Special::None), [4, 11, 4, 10]);
}
