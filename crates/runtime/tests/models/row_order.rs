//! PEFT adapters of Llama models, whose checkpoints have the rows of queries and keys in another order than GGUF files.

use rullama_adapter::{Adapter, Format, Pair};
use rullama_engine::executor::Device;
use rullama_runtime::{Model, adapters::FactorType};

use crate::{
    adapters,
    golden::{Golden, model},
};

const NAME: &str = "micro-llama-Q4_1";
const RANK: usize = 2;

/// An adapter of the first layer's queries and keys.
fn adapter(model: &Model, format: Format) -> Adapter {
    let (width, head) = (model.config().width, model.config().layers[0].head);
    let kv_heads = model.config().layers[0].kv_heads;
    let pair = |name: &str, rows: usize| Pair {
        tensor: format!("blk.0.{name}.weight"),
        experts: 1,
        rank: RANK,
        rows,
        columns: width,
        a: (0..RANK * width).map(|i| (i % 7) as f32 * 0.1 - 0.3).collect(),
        b: (0..RANK * rows).map(|i| (i % 11) as f32 * 0.1 - 0.5).collect(),
        scale: 1.0,
    };
    let pairs = vec![pair("attn_k", kv_heads * head), pair("attn_q", width)];
    let architecture = Some("llama".into());
    Adapter { name: "a".into(), format, architecture, base_model: None, pairs, ignored: vec![] }
}

fn logits(model: &Model, adapters: &[(&Adapter, f32)]) -> Vec<f32> {
    let ids = Golden::of(NAME).ids("short.ids");
    adapters::logits(model, adapters, &ids, 512, FactorType::F32)
}

#[test]
fn they_change_what_a_converted_adapter_changes() {
    let model = model(NAME, &Device::Cpu);
    let gguf = adapter(&model, Format::Gguf);
    let in_file_order = adapter(&model, Format::Peft);
    let peft = model.checkpoint_order(&in_file_order).into_owned();
    assert_ne!(peft.pairs, gguf.pairs, "rows are in another order");
    let wanted = logits(&model, &[(&gguf, 1.0)]);
    assert_eq!(logits(&model, &[(&peft, 1.0)]), wanted);
    assert_ne!(logits(&model, &[(&in_file_order, 1.0)]), wanted);
    assert_ne!(logits(&model, &[]), wanted);
}
