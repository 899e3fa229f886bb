use rullama_adapter::{AdapterError, EMBEDDING};
use rullama_gguf::{DType, Writer, quant};
use rullama_testkit::golden;

use crate::support::{assert_same_updates, read};

fn counted(writer: Writer, name: &str, dims: &[u64], dtype: DType) -> Writer {
    let count: u64 = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
    writer.tensor(name, dims, dtype, quant::quantize(dtype, &values).expect("whole blocks"))
}

fn adapter() -> Writer {
    Writer::new()
        .kv("general.type", "adapter")
        .kv("general.architecture", "gemma4")
        .kv("adapter.type", "lora")
}

#[test]
fn the_golden_adapters_are_read() {
    let moe = read(golden("gguf/micro-moe-lora-F32.gguf"), None).expect("an adapter");
    assert!(moe.pairs.iter().all(|pair| pair.rank == 4 && pair.scale == 2.0));
    // Two sliding-window layers, and a global one whose keys are its values.
    assert_eq!(moe.pairs.len(), 7 + 7 + 6);
}

#[test]
fn ranks_come_from_tensors_and_alpha_may_be_missing() {
    for (alpha, dtype, wanted) in
        [(Some(8.0f32), DType::F32, 4.0), (None, DType::F16, 1.0), (Some(0.0), DType::BF16, 1.0)]
    {
        let writer = match alpha {
            Some(alpha) => adapter().kv("adapter.lora.alpha", alpha),
            None => adapter(),
        };
        let writer = counted(writer, "blk.0.attn_q.weight.lora_a", &[5, 2], dtype);
        let writer = counted(writer, "blk.0.attn_q.weight.lora_b", &[2, 3], dtype);
        let writer = counted(writer, "blk.0.attn_norm.weight", &[5], DType::F32);
        let adapter = read(writer.finish().expect("a file"), None).expect("an adapter");
        let pair = &adapter.pairs[0];
        assert_eq!((pair.rank, pair.rows, pair.columns, pair.scale), (2, 3, 5, wanted));
        assert_eq!(adapter.ignored, ["blk.0.attn_norm.weight"]);
    }
}

#[test]
fn quantised_factors_are_read() {
    let writer = counted(adapter(), "blk.0.attn_q.weight.lora_a", &[32, 1], DType::Q8_0);
    let writer = counted(writer, "blk.0.attn_q.weight.lora_b", &[1, 3], DType::F32);
    let adapter = read(writer.finish().expect("a file"), None).expect("an adapter");
    assert!((adapter.pairs[0].a[31] - 31.0).abs() < 0.2);
}

#[test]
fn embedding_factors_are_stored_by_rows() {
    let writer = counted(adapter(), "token_embd.weight.lora_a", &[2, 5], DType::F32);
    let writer = counted(writer, "token_embd.weight.lora_b", &[2, 3], DType::F32);
    let adapter = read(writer.finish().expect("a file"), None).expect("an adapter");
    let pair = &adapter.pairs[0];
    assert_eq!((pair.tensor.as_str(), pair.rows, pair.columns), (EMBEDDING, 5, 3));
    assert_eq!(pair.b[..4], [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(pair.a, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
}

#[test]
fn expert_factors_are_stored_one_after_the_other() {
    let name = "blk.0.ffn_up_exps.weight";
    let file = |b: &[u64]| {
        let writer = counted(adapter(), &format!("{name}.lora_a"), &[4, 2, 3], DType::F32);
        counted(writer, &format!("{name}.lora_b"), b, DType::F32).finish().expect("a file")
    };
    let it = read(file(&[2, 5, 3]), None).expect("an adapter");
    let pair = &it.pairs[0];
    assert_eq!((pair.experts, pair.rank, pair.rows, pair.columns), (3, 2, 5, 4));
    assert_eq!((pair.a[8], pair.b[10]), (8.0, 10.0));
    let again = read(it.to_gguf().expect("a file"), None).expect("an adapter");
    assert_same_updates(&again.pairs, &it.pairs);
    assert!(matches!(it.to_peft("x"), Err(AdapterError::NoPeftName { .. })));
    let error = read(file(&[2, 5, 4]), None).expect_err("another number of experts");
    assert!(matches!(error, AdapterError::Experts { a: 3, b: 4, .. }), "{error}");
}

#[test]
fn other_files_are_refused() {
    let model = read(golden("gguf/micro-dense-BF16.gguf"), None);
    assert!(matches!(model, Err(AdapterError::WrongType { .. })), "{model:?}");
    let error = read(adapter().finish().expect("a file"), None).expect_err("nothing in it");
    assert!(matches!(error, AdapterError::Empty { .. }), "{error}");
    let with = |name: &str, dims: &[u64]| {
        let file = counted(adapter(), name, dims, DType::F32).finish().expect("a file");
        read(file, None).expect_err("a broken adapter")
    };
    let error = with("blk.0.ffn_up_exps.weight.lora_a", &[4, 2, 3, 2]);
    assert!(matches!(error, AdapterError::NotAMatrix { .. }), "{error}");
    let error = with("blk.0.ffn_up.weight.lora_a", &[4, 2, 3]);
    assert!(matches!(error, AdapterError::NotAMatrix { .. }), "{error}");
    let error = with("blk.0.ffn_up.weight", &[4, 2]);
    assert!(matches!(error, AdapterError::UnknownTensors { .. }), "{error}");
    let error = with("blk.0.ffn_up.weight.lora_b", &[4, 2]);
    assert!(matches!(error, AdapterError::Missing { half: "A", .. }), "{error}");
}
