//! `rullama detokenize`.

use rullama_testkit::golden;
use serde_json::{Value, json};

use crate::{
    models::{MICRO, REAL, golden_arg},
    program::{has, rullama},
};

#[test]
fn golden_cases_decode() {
    let golden: Value = serde_json::from_slice(&golden("tokenizer_cases.json")).unwrap();
    let model = golden_arg(MICRO);
    for case in golden["cases"].as_array().unwrap() {
        let args = ["detokenize", &model, "--special", "--json", "--stdin"];
        let output = rullama(args).stdin(case["ids"].to_string()).json();
        assert_eq!(output["text"], case["decoded_special"], "{case}");
        assert_eq!(output["pieces"], case["tokens"], "{case}");
    }
}

#[test]
fn texts_survive_a_round_trip() {
    let text = "Grüße!\n\n\tdef f(x):  # 中文 🦙\r\n";
    for model in [golden_arg(MICRO), REAL.to_str().unwrap().to_owned()] {
        let ids = rullama(["tokenize", &model, "--json", text]).json()["ids"].to_string();
        let back = rullama(["detokenize", &model, &ids]).stdout();
        assert_eq!(back, format!("{text}\n"));
    }
}

#[test]
fn ids_in_several_formats() {
    let model = golden_arg(MICRO);
    let check = |args: &[&str], stdin: &str| {
        let text = rullama(["detokenize", &model]).and(args).stdin(stdin).stdout();
        assert_eq!(text, "the a\n", "{args:?} {stdin:?}");
    };
    check(&["602", "111", "435"], "");
    check(&["602,111,435"], "");
    check(&["[602, 111, 435]"], "");
    check(&[], "602 111 435");
    check(&[], "[602,\n111,\n435]\n");
    check(&["--stdin"], "602\n111\n435\n");
}

#[test]
fn control_tokens_are_hidden_by_default() {
    let model = golden_arg(MICRO);
    let decode = |flags: &[&str]| {
        rullama(["detokenize", &model, "2", "105", "435", "106"]).and(flags).stdout()
    };
    assert_eq!(decode(&[]), "a\n");
    assert_eq!(decode(&["--special"]), "<bos><|turn>a<turn|>\n");
}

#[test]
fn no_ids_give_empty_text() {
    let model = golden_arg(MICRO);
    let empty = json!({ "text": "", "pieces": [] });
    for stdin in ["", "[]", " \n"] {
        assert_eq!(rullama(["detokenize", &model, "--json"]).stdin(stdin).json(), empty);
    }
}

#[test]
fn ids_past_the_vocabulary_are_refused() {
    let model = golden_arg(MICRO);
    has(&rullama(["detokenize", &model, "1", "640"]).fails(1), &["640", "639"]);
    has(&rullama(["detokenize", &model, "4294967295"]).fails(1), &["4294967295"]);
}

#[test]
fn invalid_ids_are_named() {
    let model = golden_arg(MICRO);
    for bad in ["x", "-1", "1.5", "4294967296", "[1, null]"] {
        let word = if bad.contains("null") { "null" } else { bad };
        has(&rullama(["detokenize", &model, bad]).fails(1), &[word, "not a token id"]);
    }
}

#[test]
fn incomplete_characters_are_replaced() {
    let model = golden_arg(MICRO);
    // The first two of an emoji's four byte tokens.
    let ids = rullama(["tokenize", &model, "--json", "🦙"]).json();
    let half: Vec<String> =
        ids["ids"].as_array().unwrap()[..2].iter().map(ToString::to_string).collect();
    assert_eq!(rullama(["detokenize", &model]).and(half).stdout(), "\u{FFFD}\n");
}
