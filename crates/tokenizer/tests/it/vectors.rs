//! Ids known from other implementations.

use rullama_testkit::golden;
use rullama_tokenizer::{
    Render,
    Special::{self, None, Parse, UserDefined},
    Tokenizer,
};

use crate::support::{REAL, SMALL};

#[track_caller]
fn check(tokenizer: &Tokenizer, text: &str, special: Special, want: &[u32]) {
    let got = tokenizer.encode(text, special);
    let texts: Vec<_> = got.iter().map(|&id| tokenizer.token_text(id)).collect();
    assert_eq!(got, want, "{text:?} with {special:?} became {texts:?}");
}

#[track_caller]
fn check_real(text: &str, special: Special, want: &[u32]) {
    check(&REAL.tokenizer, text, special, want);
}

#[test]
fn vocabulary_test_file() {
    let read = |ext: &str| {
        let bytes = golden(&format!("tokenizer/ggml-vocab-gemma-4.gguf.{ext}"));
        String::from_utf8(bytes).expect("the file is UTF-8")
    };
    let (texts, lines) = (read("inp"), read("out"));
    let texts: Vec<_> = texts.split("\n__ggml_vocab_test__\n").collect();
    let lines: Vec<_> =
        lines.strip_suffix('\n').expect("ends with a newline").split('\n').collect();
    assert_eq!(texts.len(), 46);
    assert_eq!(lines.len(), 46);
    for (text, line) in texts.iter().zip(lines) {
        let ids: Vec<u32> =
            line.split_whitespace().map(|id| id.parse().expect("a number")).collect();
        check_real(text, UserDefined, &ids);
        assert_eq!(REAL.tokenizer.decode(&ids, Render::Plain), *text);
    }
}

#[test]
fn golden_cases_of_the_small_vocabulary() {
    let file: serde_json::Value =
        serde_json::from_slice(&golden("tokenizer_cases.json")).expect("JSON");
    let tokenizer = &SMALL.tokenizer;
    let cases = file["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 42);
    let strings = |case: &serde_json::Value| -> Vec<String> {
        case["tokens"]
            .as_array()
            .expect("tokens")
            .iter()
            .map(|t| t.as_str().expect("text").into())
            .collect()
    };
    for case in cases {
        let text = case["text"].as_str().expect("text");
        let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).expect("ids");
        // In this file, the beginning-of-sequence token is always present.
        assert_eq!(Some(ids[0]), tokenizer.bos());
        check(tokenizer, text, Parse, &ids[1..]);
        let texts: Vec<_> =
            ids.iter().map(|&id| tokenizer.token_text(id).expect("an id")).collect();
        assert_eq!(texts, strings(case));
        assert_eq!(
            tokenizer.decode(&ids, Render::All),
            case["decoded_special"].as_str().expect("text")
        );
        // `decoded` in this file omits user-defined tokens too.
        let mut plain = tokenizer.decode(&ids, Render::Plain);
        for (token, kind) in SMALL.vocab.tokens.iter().zip(&SMALL.vocab.types) {
            if *kind == 4 {
                plain = plain.replace(token, "");
            }
        }
        assert_eq!(plain, case["decoded"].as_str().expect("text"));
    }
}

#[test]
fn words_and_whitespace() {
    for (text, ids) in [
        ("", &[][..]),
        ("hello", &[23391]),
        ("hello world", &[23391, 1902]),
        ("Hello, World!", &[9259, 236764, 4109, 236888]),
        ("Hello", &[9259]),
        (" Hello", &[26352]),
        (" hello", &[29104]),
        ("  hello", &[138, 23391]),
        ("hello  world", &[23391, 138, 12392]),
        ("      ", &[142]),
        ("multiple    spaces", &[43819, 140, 35220]),
        ("café résumé naïve", &[123125, 236859, 118515, 120362]),
        ("你好世界", &[144626, 12811]),
        ("こんにちは", &[85141]),
        ("\n\n", &[108]),
        ("\t\t", &[255969]),
        ("{\"key\": \"value\"}", &[14937, 2478, 1083, 623, 2394, 25938]),
        ("aaaaaa", &[50354, 9236]),
        ("hello 👋 world", &[23391, 155818, 1902]),
        ("12345", &[236770, 236778, 236800, 236812, 236810]),
        ("🦙", &[478, 397, 404, 391]),
    ] {
        for special in [Parse, UserDefined, None] {
            check_real(text, special, ids);
        }
    }
}

#[test]
fn markers_of_a_prompt() {
    for (text, ids) in [
        (
            "<|turn>user\nHi<turn|>\n<|turn>model\n",
            &[105, 2364, 107, 10979, 106, 107, 105, 4368, 107][..],
        ),
        (
            "<|turn>user\nWhat is 2+2?<turn|>\n<|turn>model\n",
            &[
                105, 2364, 107, 3689, 563, 236743, 236778, 236862, 236778, 236881, 106, 107, 105,
                4368, 107,
            ],
        ),
        (
            "<|tool>declaration:bash{description:<|\"|>Run a command<|\"|>}<tool|>",
            &[46, 163688, 236787, 42422, 236782, 7777, 236787, 52, 7306, 496, 4991, 52, 236783, 47],
        ),
        (
            "<|tool_call>call:bash{command:<|\"|>ls -la<|\"|>}<tool_call|>",
            &[48, 6639, 236787, 42422, 236782, 7674, 236787, 52, 5629, 753, 2149, 52, 236783, 49],
        ),
        (
            "<|channel>thought\nLet me think about this...<channel|>The answer is 42.",
            &[
                100, 45518, 107, 6481, 786, 1751, 1003, 672, 1390, 101, 818, 3890, 563, 236743,
                236812, 236778, 236761,
            ],
        ),
    ] {
        check_real(text, Parse, ids);
    }
}

#[test]
fn incorrect_shortcuts() {
    check_real("<bos>", UserDefined, &[236820, 46757, 236813]);
    check_real("<turn|>", UserDefined, &[236820, 887, 111038]);
    check_real("<|tool_call>", UserDefined, &[48]);
    check_real("<|tool_response>", UserDefined, &[236820, 236909, 13205, 236779, 6275, 236813]);
    let blanks = |blank: &str| blank.repeat(33);
    for (text, ids) in [
        ("<0x41>", &[236820, 236771, 236781, 236812, 236770, 236813][..]),
        ("<table>", &[236820, 5127, 236813]),
        ("<unused3>", &[236820, 63634, 236800, 236813]),
        (" YYYY", &[895, 33990, 236874]),
        (&blanks("\n"), &[137, 108]),
        (&blanks(" "), &[167, 138]),
        (&blanks("\t"), &[255998, 255969]),
    ] {
        for special in [Parse, UserDefined, None] {
            check_real(text, special, ids);
        }
    }
}
