//! Inconsistent files are refused with a reason.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{Model, RuntimeError, model::LoadOptions};
use rullama_source::MemorySource;
use rullama_testkit::golden;

fn load(bytes: Vec<u8>) -> Result<Model, RuntimeError> {
    let gguf = block_on(Gguf::open(Rc::new(MemorySource::new("changed", bytes))))?;
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(gguf, Device::Cpu, &LoadOptions::default(), &mut go_on))
}

/// The file with a key's value changed; a four-byte type precedes the value.
fn with(key: &str, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = golden("gguf/micro-e2b-Q8_0.gguf");
    let at = bytes.windows(key.len()).position(|w| w == key.as_bytes()).expect("the key is there");
    change(&mut bytes[at + key.len() + 4..]);
    bytes
}

#[test]
fn keys_and_tensors_must_agree() {
    for (key, value, says) in [
        ("gemma4.embedding_length", 96u32, "embedding_length"),
        ("gemma4.attention.head_count", 3, "attention.head_count"),
        ("gemma4.attention.key_length", 64, "keys and values must have the same length"),
        ("gemma4.attention.shared_kv_layers", 6, "at least one layer must have keys"),
        ("gemma4.block_count", 0, "at least 1"),
        ("gemma4.block_count", 5, "one per layer"),
        ("gemma4.block_count", 4_000_000_000, "out of range"),
        ("gemma4.attention.sliding_window", 0, "at least 1"),
        ("gemma4.embedding_length_per_layer_input", 16, "embedding_length_per_layer_input"),
    ] {
        let bytes = with(key, |v| v[..4].copy_from_slice(&value.to_le_bytes()));
        let error = load(bytes).expect_err("inconsistent").to_string();
        assert!(error.contains(says), "{key} = {value}: {error}");
    }
}

#[test]
fn a_shape_error_names_tensor_and_keys() {
    let bytes =
        with("gemma4.attention.head_count", |v| v[..4].copy_from_slice(&2u32.to_le_bytes()));
    let error = load(bytes).expect_err("inconsistent").to_string();
    assert_eq!(
        error,
        "tensor blk.0.attn_q.weight is 64 × 64, but embedding_length, attention.head_count and attention.key_length(_swa) imply 64 × 32; the file is inconsistent, download it again"
    );
}

#[test]
fn missing_tensors_are_listed() {
    let mut bytes = golden("gguf/micro-e2b-Q8_0.gguf");
    let name = b"blk.3.ffn_down.weight";
    let at = bytes.windows(name.len()).position(|w| w == name).expect("it is there");
    bytes[at + 4] = b'7';
    let error = load(bytes).expect_err("a tensor is missing").to_string();
    assert!(error.contains("blk.3.ffn_down.weight"), "{error}");
}

#[test]
fn loading_can_be_cancelled() {
    let source = Rc::new(MemorySource::new("m", golden("gguf/micro-e2b-Q8_0.gguf")));
    let gguf = block_on(Gguf::open(source)).expect("it opens");
    let mut stop = |_| ControlFlow::Break(());
    let loaded = block_on(Model::load(gguf, Device::Cpu, &LoadOptions::default(), &mut stop));
    assert!(matches!(loaded, Err(RuntimeError::Cancelled)));
}
