//! Text embeddings against the reference, alone and in batches.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::{Gguf, Value, Writer};
use rullama_runtime::{
    Embedder, RuntimeError,
    embedder::{EmbedOptions, EmbeddingPrompt},
    vocabulary,
};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::golden::{Golden, devices};

fn open(bytes: Vec<u8>) -> Gguf {
    let source = Rc::new(MemorySource::new("encoder.gguf", bytes));
    block_on(Gguf::open(source)).expect("the file opens")
}

fn file(name: &str) -> Gguf {
    open(golden(&format!("embedding/{name}-BF16.gguf")))
}

/// The first generation with the tensor names of early files.
fn legacy() -> Gguf {
    let gguf = file("first");
    let renamed = |key: &str| key.replace("gemma-embedding.", "gemma3.");
    let entries = gguf.metadata().iter().fold(Writer::new(), |file, entry| match &*entry.key {
        "general.architecture" => file.kv("general.architecture", "gemma3"),
        key => file.kv(renamed(key), entry.value.clone()),
    });
    let pattern = [true, true, true, true, true, false].to_vec();
    let entries = entries
        .kv("gemma3.attention.sliding_window_pattern", Value::from(pattern))
        .kv("gemma3.attention.causal", false)
        .kv("gemma3.rope.local.freq_base", 1e4f32);
    let written = gguf.tensors().iter().fold(entries, |file, tensor| {
        let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).expect("its bytes");
        let name = match tensor.name() {
            "dense_2.weight" => "dense.0.weight",
            "dense_3.weight" => "dense.1.weight",
            "output_norm.weight" => "norm.weight",
            name => name,
        };
        file.tensor(name, tensor.dims(), tensor.dtype(), bytes)
    });
    open(written.finish().expect("a file"))
}

fn loaded(gguf: &Gguf, device: &Device) -> Result<Embedder, RuntimeError> {
    block_on(Embedder::load(gguf, device.clone(), &mut |_| ControlFlow::Continue(())))
}

fn embedder(gguf: &Gguf, device: &Device) -> Embedder {
    loaded(gguf, device).expect("the encoder loads")
}

fn check_close(made: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(made.len(), wanted.len(), "{what}");
    let error = made.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(error < 2e-5, "{what}: off by {error}");
}

#[test]
fn vectors_equal_the_reference() {
    for device in devices() {
        for (gguf, reference) in
            [(file("first"), "first"), (legacy(), "first"), (file("second"), "second")]
        {
            let golden = Golden::at(&format!("embedding/{reference}.safetensors"));
            let embedder = embedder(&gguf, &device);
            // All in one pass: texts must not attend to each other.
            let prompts = ["short", "medium", "long"];
            let texts = prompts.map(|prompt| golden.ids(&format!("{prompt}.ids")));
            let made = block_on(embedder.embed_tokens(&texts, None)).expect("vectors");
            for (vector, prompt) in made.iter().zip(prompts) {
                let wanted = golden.f32(&format!("{prompt}.unit"));
                check_close(vector, &wanted, &format!("{reference} {prompt} on {}", device.name()));
            }
            let alone = block_on(embedder.embed_tokens(&texts[1..2], None)).expect("a vector");
            check_close(&alone[0], &made[1], "alone and in a batch");
        }
    }
}

#[test]
fn truncated_vectors_are_normalised() {
    let golden = Golden::at("embedding/first.safetensors");
    let embedder = embedder(&file("first"), &Device::Cpu);
    let text = [golden.ids("medium.ids")];
    let made = block_on(embedder.embed_tokens(&text, Some(16))).expect("a vector");
    check_close(&made[0], &golden.f32("medium.unit_half"), "half of the dimensions");
    for wrong in [0, 33] {
        let error = block_on(embedder.embed_tokens(&text, Some(wrong))).expect_err("impossible");
        assert!(error.to_string().contains("choose 1 to 32"), "{error}");
    }
}

#[test]
fn texts_get_prefix_and_end_token() {
    let embedder = embedder(&file("first"), &Device::Cpu);
    let (ids, cut) = embedder.tokens("Hello").expect("tokens");
    assert!(!cut && ids.len() > 2, "{ids:?}");
    assert_eq!((ids[0], ids.last()), (2, Some(&1)), "{ids:?}");
    let long = "Hello ".repeat(3000);
    let (ids, cut) = embedder.tokens(&long).expect("tokens");
    assert!(cut && ids.len() == 2048 && ids.last() == Some(&1), "{} tokens", ids.len());
    let query = EmbedOptions { prompt: EmbeddingPrompt::Query, ..EmbedOptions::default() };
    let asked = block_on(embedder.embed(&["Hello"], query)).expect("a vector");
    let spelled =
        block_on(embedder.embed(&["task: search result | query: Hello"], EmbedOptions::default()));
    assert_eq!(asked, spelled.expect("a vector"));
}

#[test]
fn scores_tokenize_as_merges_do() {
    let by_score = vocabulary::tokenizer(&file("first")).expect("a vocabulary");
    let by_merge = vocabulary::tokenizer(&file("second")).expect("a vocabulary");
    for text in ["Hello, world", "the of and", "a b  c", "Zürich 語 ✓", "loooong words, etc."] {
        let ids = |tokenizer: &rullama_tokenizer::Tokenizer| {
            tokenizer.encode(text, rullama_tokenizer::Special::None)
        };
        assert_eq!(ids(&by_score), ids(&by_merge), "{text}");
    }
}

#[test]
fn other_models_are_refused() {
    let error = loaded(&open(golden("gguf/micro-dense-BF16.gguf")), &Device::Cpu);
    assert!(error.expect_err("no embedding model").to_string().contains("use an EmbeddingGemma"));
}
