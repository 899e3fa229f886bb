//! Decoders of other families than Gemma 4.

use rullama_adapter::{Adapter, Format, Pair};
use serde_json::json;

use crate::{
    models::{FileInFolder, golden_arg},
    program::{has, rullama},
};

#[test]
fn they_are_shown_and_answer() {
    for (name, architecture, capabilities) in [
        ("micro-llama-Q4_1", "llama", json!(["text", "training"])),
        ("micro-qwen3-Q8_0", "qwen3", json!(["text", "training"])),
        ("micro-g3-Q4_0", "gemma3", json!(["text", "training"])),
    ] {
        let model = golden_arg(&format!("gguf/{name}.gguf"));
        let shown = rullama(["show", &model, "--json"]).json();
        assert_eq!(shown["architecture"], architecture);
        assert_eq!(shown["capabilities"], capabilities, "{name}");
        let options = ["--device", "cpu", "--num-predict", "4", "--ctx", "128"];
        rullama([&["run", &model, "hello"], &options[..]].concat()).stdout();
    }
}

#[test]
fn gemma_3_replies_to_an_image() {
    let [model, encoder, image] =
        ["gguf/micro-g3p-BF16.gguf", "gguf/micro-g3p-mmproj-F16.gguf", "media/micro-g3p-image.png"]
            .map(golden_arg);
    let options = ["--device", "cpu", "--num-predict", "8", "--ctx", "128", "--temperature", "0"];
    let ask = [&["run", &model, "What is it?"], &options[..]].concat();
    let with_image = [&ask[..], &["--mmproj", &encoder, "--image", &image]].concat();
    let (blind, seen) = (rullama(ask).stdout(), rullama(with_image).stdout());
    assert_ne!(blind, seen, "the image changes the reply");
}

#[test]
fn adapters_of_llama_are_not_converted_to_peft() {
    let pair = Pair {
        tensor: "blk.0.attn_q.weight".into(),
        experts: 1,
        rank: 1,
        rows: 4,
        columns: 4,
        a: vec![1.0; 4],
        b: vec![1.0; 4],
        scale: 1.0,
    };
    let adapter = Adapter {
        name: "a".into(),
        format: Format::Gguf,
        architecture: Some("llama".into()),
        base_model: None,
        pairs: vec![pair],
        ignored: Vec::new(),
    };
    let file = FileInFolder::new("a.gguf", adapter.to_gguf().expect("a file"));
    let out = format!("{}.peft", file.arg());
    let error = rullama(["adapter", "convert", file.arg(), "--out", &out]).fails(1);
    has(&error, &["llama", "another order"]);
}
