//! `rullama tokenize`.

use std::{path::Path, thread};

use rullama_testkit::golden;
use serde_json::{Value, json};

use crate::{
    models::{MICRO, REAL, golden_arg},
    program::{has, rullama},
};

/// The ids of `text`, given on standard input.
fn ids(model: &str, flags: &[&str], text: impl Into<Vec<u8>>) -> Vec<u64> {
    let program = rullama(["tokenize", model, "--stdin", "--json"]);
    let output = program.and(flags).stdin(text).json();
    output["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

fn micro(flags: &[&str], text: impl Into<Vec<u8>>) -> Vec<u64> {
    ids(&golden_arg(MICRO), flags, text)
}

#[test]
fn golden_cases_of_the_small_vocabulary() {
    let golden: Value = serde_json::from_slice(&golden("tokenizer_cases.json")).unwrap();
    let model = golden_arg(MICRO);
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 42);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let want = |key: &str| case[key].as_array().unwrap().clone();
        let args = ["tokenize", &model, "--special", "--json", "--stdin"];
        let output = rullama(args).stdin(text).json();
        // The reference always starts with the beginning-of-sequence token.
        assert_eq!(output["ids"], json!(want("ids")[1..]), "{text:?}");
        assert_eq!(output["pieces"], json!(want("tokens")[1..]), "{text:?}");
        let with_bos = rullama(args).stdin(text).and(["--bos"]).json();
        let skip = usize::from(text.starts_with("<bos>"));
        assert_eq!(with_bos["ids"], json!(want("ids")[skip..]), "{text:?}");
    }
}

#[test]
fn golden_cases_of_the_real_vocabulary() {
    let read = |name: &str| String::from_utf8(golden(&format!("tokenizer/{name}"))).unwrap();
    let inputs = read("ggml-vocab-gemma-4.gguf.inp");
    let outputs = read("ggml-vocab-gemma-4.gguf.out");
    let cases: Vec<(&str, &str)> =
        inputs.split("\n__ggml_vocab_test__\n").zip(outputs.split('\n')).collect();
    assert_eq!(cases.len(), 46);
    let model = REAL.to_str().unwrap();
    let check = |(text, want): &(&str, &str)| {
        let want: Vec<u64> = want.split_whitespace().map(|id| id.parse().unwrap()).collect();
        assert_eq!(ids(model, &[], *text), want, "{text:?}");
    };
    thread::scope(|scope| {
        for half in cases.chunks(cases.len().div_ceil(2)) {
            scope.spawn(move || half.iter().for_each(check));
        }
    });
}

#[test]
fn text_output() {
    let model = golden_arg(MICRO);
    assert_eq!(
        rullama(["tokenize", &model, "the\tHi\n"]).stdout(),
        "602    the\n114    \\t\n410    H\n443    i\n107    \\n\n"
    );
}

#[test]
fn text_comes_as_an_argument_or_on_standard_input() {
    let model = golden_arg(MICRO);
    for text in ["The quick brown fox", "two  spaces\n\n", "café 😀", "-5 degrees", "--", "-", " "]
    {
        let want = micro(&[], text);
        for args in [
            vec!["tokenize", &model, "--json", "--", text],
            vec!["tokenize", "--json", "--", &model, text],
        ] {
            assert_eq!(rullama(args).json()["ids"], json!(want), "{text:?}");
        }
        // Without --stdin, standard input is read if no text is given.
        let piped = rullama(["tokenize", &model, "--json"]).stdin(text).json();
        assert_eq!(piped["ids"], json!(want), "{text:?}");
    }
    for text in ["-5 degrees", "-x", "--unheard-of"] {
        let plain = rullama(["tokenize", &model, "--json", text]).json();
        assert_eq!(plain["ids"], json!(micro(&[], text)), "{text:?}");
    }
}

#[test]
fn text_and_stdin_conflict() {
    let model = golden_arg(MICRO);
    has(&rullama(["tokenize", &model, "text", "--stdin"]).fails(2), &["--stdin"]);
}

#[test]
fn empty_text_has_no_tokens() {
    let model = golden_arg(MICRO);
    let empty = json!({ "ids": [], "pieces": [] });
    assert_eq!(rullama(["tokenize", &model, "--json", ""]).json(), empty);
    assert_eq!(rullama(["tokenize", &model, "--json", "--stdin"]).json(), empty);
    assert_eq!(rullama(["tokenize", &model, ""]).stdout(), "");
    assert_eq!(micro(&["--bos"], ""), [2]);
}

#[test]
fn bytes_that_are_not_utf8_become_replacement_characters() {
    for bytes in [&b"a\xFFb"[..], b"\xF0\x9F\xA6", b"\xC3(", b"ok\x80"] {
        let text = String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(micro(&[], bytes), micro(&[], text), "{bytes:02X?}");
    }
}

#[test]
fn control_tokens_are_recognised_only_with_special() {
    let text = "<|turn>user\nHi<turn|>";
    let special = micro(&["--special"], text);
    assert_eq!((special.first(), special.last()), (Some(&105), Some(&106)));
    let plain = micro(&[], text);
    assert!(plain.len() > special.len() && !plain.contains(&105) && !plain.contains(&106));
    assert_eq!(micro(&["--special", "--bos"], "<bos>a"), [2, 435]);
    assert_eq!(micro(&["--bos"], "a"), [2, 435]);
}

#[test]
fn a_file_without_a_vocabulary_is_refused() {
    let file =
        crate::models::FileInFolder::new("m.gguf", crate::models::small_file().finish().unwrap());
    has(&rullama(["tokenize", file.arg(), "text"]).fails(4), &["m.gguf", "no vocabulary"]);
}

#[test]
fn a_missing_file_is_not_found() {
    assert!(!Path::new("/no/such/file.gguf").exists());
    has(&rullama(["tokenize", "/no/such/file.gguf", "x"]).fails(3), &["/no/such/file.gguf"]);
}
