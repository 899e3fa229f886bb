//! Files written by other programs.

use rullama_gguf::{DType, Gguf};
use rullama_testkit::golden;

use crate::support::open;

/// Opens a golden file and decodes every tensor; all weights are small and finite.
fn check(name: &str, architecture: &str, dtypes: &[DType]) -> Gguf {
    let bytes = golden(name);
    let len = bytes.len() as u64;
    let gguf = open(bytes).unwrap();
    assert_eq!(gguf.version(), 3);
    assert_eq!(gguf.str("general.architecture").unwrap(), architecture);
    let end = gguf.tensors().iter().map(|t| t.offset() + t.nbytes()).max().unwrap();
    assert_eq!(end.next_multiple_of(gguf.alignment().into()), len, "{name}: data fill the file");
    for dtype in dtypes {
        assert!(gguf.tensors().iter().any(|t| t.dtype() == *dtype), "{name} has no {dtype}");
    }
    for tensor in gguf.tensors() {
        let numbers = pollster::block_on(gguf.rows_f32(tensor, 0..tensor.rows())).unwrap();
        assert_eq!(numbers.len() as u64, tensor.elements());
        assert!(numbers.iter().any(|x| *x != 0.0), "{name}: {} is all zeros", tensor.name());
        let raw = pollster::block_on(gguf.read_rows(tensor, 0..tensor.rows())).unwrap();
        tensor.check_finite(0, &raw).unwrap();
        if tensor.name() != "rope_freqs.weight" {
            assert!(numbers.iter().all(|x| x.abs() < 100.0), "{name}: {}", tensor.name());
        }
    }
    gguf
}

#[test]
fn micro_e2b() {
    let gguf = check("gguf/micro-e2b-Q8_0.gguf", "gemma4", &[DType::F32, DType::Q8_0]);
    let layers = gguf.u32("gemma4.block_count").unwrap() as usize;
    assert_eq!(gguf.bools("gemma4.attention.sliding_window_pattern").unwrap().len(), layers);
}

#[test]
fn tiny_e2b() {
    check("gguf/tiny-e2b-Q4_K_M.gguf", "gemma4", &[DType::F32, DType::Q4_K, DType::Q6_K]);
}

#[test]
fn micro_moe() {
    let gguf = check("gguf/micro-moe-BF16.gguf", "gemma4", &[DType::F32, DType::BF16]);
    let experts = gguf.tensors().iter().find(|t| t.name().contains("_exps.weight")).unwrap();
    assert_eq!(experts.dims().len(), 3);
    assert_eq!(experts.dims()[2], u64::from(gguf.u32("gemma4.expert_count").unwrap()));
}
