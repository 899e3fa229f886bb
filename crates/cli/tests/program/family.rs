//! Related models: drafters, embedding models, diffusion models.

use rullama_testkit::golden;
use serde_json::{Value, json};

use crate::{
    models::golden_arg,
    program::{has, rullama},
    store::Store,
};

const TARGET: &str = "gguf/micro-e2b-BF16.gguf";
const DRAFTER: &str = "assistant/micro-assistant-BF16.gguf";
const FIRST: &str = "embedding/first-BF16.gguf";
const DIFFUSION: &str = "diffusion/micro-diffusion-BF16.gguf";

fn reply(more: &[&str]) -> Value {
    let model = golden_arg(TARGET);
    rullama([
        "run",
        &model,
        "Hello there",
        "--device",
        "cpu",
        "--temperature",
        "0",
        "-n",
        "16",
        "--json",
    ])
    .and(more.iter().copied())
    .json()
}

#[test]
fn drafts_do_not_change_replies() {
    let plain = reply(&[]);
    let drafter = golden_arg(DRAFTER);
    for draft in [&drafter[..], "ngram", "off"] {
        assert_eq!(reply(&["--draft", draft])["text"], plain["text"], "{draft}");
    }
}

#[test]
fn a_model_of_the_store_uses_its_drafter() {
    let store = Store::empty();
    let layers = [store.blob("model", golden(TARGET)), store.blob("draft", golden(DRAFTER))];
    let config = store.blob("config", r#"{"model_format":"gguf","model_family":"gemma4"}"#);
    store.manifest("drafted", &json!({ "schemaVersion": 2, "config": config, "layers": layers }));
    let run =
        ["run", "drafted", "Hello there", "--device", "cpu", "--temperature", "0", "-n", "16"];
    let text = store.rullama(&run).and(["--json"]).json()["text"].clone();
    assert_eq!(text, reply(&[])["text"]);
}

#[test]
fn memory_includes_drafter_and_encoders() {
    let store = Store::empty();
    let memory = |name: &str, layers: &[(&str, &str)]| {
        let layers: Vec<_> =
            layers.iter().map(|(kind, file)| store.blob(kind, golden(file))).collect();
        let config = store.blob("config", r#"{"model_format":"gguf","model_family":"gemma4"}"#);
        store.manifest(name, &json!({ "schemaVersion": 2, "config": config, "layers": layers }));
        store.rullama(&["show", name, "--json"]).json()["memory"].clone()
    };
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap();
    let alone = memory("alone", &[("model", TARGET)]);
    assert_eq!((number(&alone, "drafter"), number(&alone, "towers")), (0, 0));
    let projector = "gguf/micro-e2b-mmproj-F16.gguf";
    let all = [("model", TARGET), ("draft", DRAFTER), ("projector", projector)];
    let whole = memory("whole", &all);
    let [drafter, towers] = ["drafter", "towers"].map(|name| number(&whole, name));
    let at_least = |file: &str| golden(file).len() as u64 / 2;
    assert!(drafter > at_least(DRAFTER) && towers > at_least(projector), "{whole}");
    assert_eq!(number(&whole, "gpu"), number(&alone, "gpu") + drafter + towers);
    has(&store.rullama(&["show", "whole"]).stdout(), &["drafter", "encoders"]);
}

#[test]
fn a_file_that_is_no_drafter_is_refused() {
    let model = golden_arg(TARGET);
    let output = rullama(["run", &model, "Hello", "--device", "cpu", "--draft", &model]);
    has(&output.fails(4), &["not a drafter"]);
}

#[test]
fn drafts_are_measured() {
    let (model, drafter) = (golden_arg(TARGET), golden_arg(DRAFTER));
    let output = rullama(["bench", &model, "-p", "0", "-n", "24", "-r", "1", "--json"])
        .and(["--device", "cpu", "--draft", &drafter, "--accept", "0.5"])
        .json();
    let drafts = &output["tests"][1]["drafts"];
    let [drafted, accepted] = ["drafted", "accepted"].map(|name| drafts[name].as_f64().unwrap());
    assert!((accepted / drafted - 0.5).abs() < 0.1, "{drafts}");
    assert!(drafts["gain"].as_f64().unwrap() > 0.0, "{drafts}");
}

#[test]
fn texts_are_embedded() {
    let model = golden_arg(FIRST);
    let output = rullama(["embed", &model, "Hello", "World", "--device", "cpu", "--json"]).json();
    let vectors = output["embeddings"].as_array().unwrap();
    assert_eq!(vectors.len(), 2);
    for vector in vectors {
        let numbers = vector.as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
        assert!((numbers.map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-5);
    }
    let short =
        rullama(["embed", &model, "Hello", "--device", "cpu", "--dimensions", "4"]).stdout();
    assert_eq!(short.split_whitespace().count(), 4, "{short}");
}

#[test]
fn a_canvas_is_denoised() {
    let model = golden_arg(DIFFUSION);
    let run = |seed: &str| {
        rullama(["run", &model, "Hello", "--device", "cpu", "--seed", seed, "--steps", "3"])
            .and(["--blocks", "2", "--json"])
            .json()
    };
    let one = run("1");
    assert_eq!(one["text"], run("1")["text"]);
    assert!(one["steps"].as_u64().unwrap() >= 3, "{one}");
    let watched =
        rullama(["run", &model, "Hello", "--device", "cpu", "--seed", "1", "--steps", "3"])
            .and(["--blocks", "1", "--show-canvas"])
            .run();
    let steps = watched.stderr;
    assert_eq!(steps.lines().filter(|line| line.starts_with("step ")).count(), 3, "{steps}");
}

#[test]
fn show_estimates_their_memory() {
    for file in [DRAFTER, FIRST, DIFFUSION] {
        let output = rullama(["show", &golden_arg(file), "--json"]).json();
        assert!(output["memory"]["gpu"].as_u64().unwrap() > 100_000, "{file}: {output}");
    }
}
