//! Perplexity of a small text.

use rullama_testkit::golden;
use safetensors::SafeTensors;
use serde_json::{Value, json};

use crate::{
    models::{FileInFolder, MICRO, golden_arg},
    program::{has, rullama},
};

const TEXT: &str = "the quick brown fox jumps over the lazy dog. ";

fn measure(text: &str, flags: &[&str]) -> Value {
    let (model, file) = (golden_arg(MICRO), FileInFolder::new("text", text));
    rullama(["perplexity", &model, file.arg(), "--device", "cpu", "--json"]).and(flags).json()
}

#[test]
fn windows_and_strides() {
    let text = TEXT.repeat(4);
    let halves = measure(&text, &["--ctx", "32"]);
    let tokens = halves["tokens"].as_u64().unwrap();
    assert_eq!(halves["windows"], tokens / 32);
    assert_eq!(halves["scored"], tokens / 32 * 15);
    let sliding = measure(&text, &["--ctx", "32", "--stride", "8"]);
    assert_eq!(sliding["scored"], tokens - 1, "every token but the first");
    for output in [halves, sliding] {
        let number = |name: &str| output[name].as_f64().unwrap();
        assert!((number("perplexity").ln() - number("loss")).abs() < 1e-9);
        assert!(number("perplexity") > 1.0 && number("error") > 0.0 && number("seconds") > 0.0);
    }
}

/// The loss of one window that scores all tokens is the mean of the reference's losses.
#[test]
fn equals_the_reference() {
    let file = golden("text/micro-e2b-Q8_0.safetensors");
    let file = SafeTensors::deserialize(&file).unwrap();
    let numbers = |name: &str| -> Vec<[u8; 4]> {
        let data = file.tensor(name).unwrap().data().to_vec();
        data.chunks_exact(4).map(|b| b.try_into().unwrap()).collect()
    };
    let ids: Vec<u32> = numbers("medium.ids").into_iter().map(u32::from_le_bytes).collect();
    let losses: Vec<f32> = numbers("medium.nll").into_iter().map(f32::from_le_bytes).collect();
    let words: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let model = golden_arg(MICRO);
    let text = rullama(["detokenize", &model]).and(&words).stdout();
    let text = text.strip_suffix('\n').unwrap();
    let again = rullama(["tokenize", &model, "--bos", "--json", text]).json();
    assert_eq!(again["ids"], json!(ids), "the text becomes the ids it came from");
    let output = measure(text, &["--ctx", "64", "--stride", "1", "--cache", "f32"]);
    let mean = losses.iter().map(|x| f64::from(*x)).sum::<f64>() / losses.len() as f64;
    assert!((output["loss"].as_f64().unwrap() - mean).abs() < 2e-3, "{output} is not {mean}");
}

#[test]
fn text_output_and_errors() {
    let (model, file) = (golden_arg(MICRO), FileInFolder::new("text", TEXT));
    let call =
        |flags: &[&str]| rullama(["perplexity", &model, file.arg(), "--device", "cpu"]).and(flags);
    has(&call(&[]).stdout(), &["perplexity", "±", "scored in 1 windows"]);
    has(&call(&["--stride", "512"]).fails(1), &["--stride"]);
    let piped = rullama(["perplexity", &model, "-", "--device", "cpu"]).stdin(TEXT).stdout();
    has(&piped, &["perplexity"]);
    has(&rullama(["perplexity", &model, "-", "--device", "cpu"]).fails(1), &["too few"]);
    let missing = rullama(["perplexity", &model, "/no/such/file", "--device", "cpu"]).fails(3);
    has(&missing, &["/no/such/file"]);
}
