//! Files in which every tensor has its own format, as "dynamic" quantisations have: their logits equal those of the same weights in f32.

use std::{collections::BTreeSet, ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_adapter::Adapter;
use rullama_engine::executor::Device;
use rullama_gguf::{
    DType, Gguf, Writer,
    quant::{dequantize, quantize},
};
use rullama_runtime::{Model, adapters::FactorType, model::LoadOptions};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::{
    adapters::{adapter, largest_difference, logits},
    expert_adapters::with_separate_gates,
    golden::{Golden, devices},
};

/// All formats, ordered so that neighbours in a file differ in block size and kind.
const FORMATS: [DType; 26] = [
    DType::IQ3_XXS,
    DType::Q4_K,
    DType::Q6_K,
    DType::IQ1_S,
    DType::Q8_0,
    DType::TQ2_0,
    DType::BF16,
    DType::IQ2_XXS,
    DType::Q5_K,
    DType::NVFP4,
    DType::IQ4_XS,
    DType::Q2_K,
    DType::F16,
    DType::IQ1_M,
    DType::Q4_0,
    DType::IQ2_S,
    DType::Q3_K,
    DType::MXFP4,
    DType::TQ1_0,
    DType::Q5_1,
    DType::IQ2_XS,
    DType::F32,
    DType::IQ3_S,
    DType::Q4_1,
    DType::IQ4_NL,
    DType::Q5_0,
];

/// As in the comparison with references: f32 activations and other orders of summation.
const TOLERANCE: f32 = 1e-3;

/// Weights in a format. Without an encoder: random codes, with a scale that keeps the size of the values.
fn encoded(dtype: DType, values: &[f32], seed: &mut u64) -> Vec<u8> {
    if let Ok(bytes) = quantize(dtype, values) {
        return bytes;
    }
    let mut out = Vec::new();
    for values in values.chunks_exact(dtype.block_elements()) {
        let mut block: Vec<u8> = (0..dtype.block_bytes()).map(|_| random(seed)).collect();
        set_scale(dtype, &mut block, 1.0);
        let mut decoded = vec![0.0; values.len()];
        dequantize(dtype, &block, &mut decoded).expect("a block");
        let size = |values: &[f32]| values.iter().map(|x| x * x).sum::<f32>().sqrt();
        set_scale(dtype, &mut block, size(values) / size(&decoded).max(1.0));
        out.extend(block);
    }
    out
}

/// Sets the f16 scale of a block.
fn set_scale(dtype: DType, block: &mut [u8], scale: f32) {
    let half = quantize(DType::F16, &[scale]).expect("a number");
    match dtype {
        // Four bits in each of the last four words.
        DType::IQ1_M => {
            for (i, byte) in block[48..].iter_mut().skip(1).step_by(2).enumerate() {
                *byte = *byte & 15 | (half[i / 2] >> (4 * (i % 2)) & 15) << 4;
            }
        }
        DType::TQ1_0 => block[52..54].copy_from_slice(&half),
        DType::TQ2_0 => block[64..66].copy_from_slice(&half),
        _ => block[..2].copy_from_slice(&half),
    }
}

fn random(seed: &mut u64) -> u8 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 56) as u8
}

fn open(bytes: Vec<u8>) -> Gguf {
    block_on(Gguf::open(Rc::new(MemorySource::new("mixed.gguf", bytes)))).expect("it opens")
}

/// A file with quantised matrices in formats of their own, beginning with the `first`, and the same weights in f32.
fn mixed(file: Vec<u8>, first: usize) -> [Gguf; 2] {
    let gguf = open(file);
    let keys = |file: Writer| {
        let entries = gguf.metadata().iter();
        entries.fold(file, |file, entry| file.kv(entry.key.as_str(), entry.value.clone()))
    };
    let (mut own, mut plain) = (keys(Writer::new()), keys(Writer::new()));
    let (mut formats, mut seed) = (FORMATS.iter().cycle().skip(first), 1);
    for info in gguf.tensors() {
        let (name, dims) = (info.name(), info.dims());
        let values = block_on(gguf.rows_f32(info, 0..info.rows())).expect("values");
        let columns = usize::try_from(dims[0]).expect("small");
        let dtype = match dims.len() {
            // Norms and routers are always F32.
            _ if info.dtype() == DType::F32 => DType::F32,
            _ => *formats.find(|f| columns.is_multiple_of(f.block_elements())).expect("one fits"),
        };
        let bytes = encoded(dtype, &values, &mut seed);
        let mut decoded = vec![0.0; values.len()];
        dequantize(dtype, &bytes, &mut decoded).expect("whole blocks");
        own = own.tensor(name, dims, dtype, bytes);
        let bytes = quantize(DType::F32, &decoded).expect("floats");
        plain = plain.tensor(name, dims, DType::F32, bytes);
    }
    [own, plain].map(|file| open(file.finish().expect("a file")))
}

fn load(gguf: Gguf, device: &Device) -> Model {
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(gguf, device.clone(), &LoadOptions::default(), &mut go_on))
        .expect("the model loads")
}

/// Checks the logits of a mixed file on all devices, token by token and in a chunk; returns its formats.
fn check(name: &str, file: &[u8], first: usize, lora: Option<&Adapter>) -> BTreeSet<&'static str> {
    let ids = Golden::of(name).ids("short.ids");
    let attached: Vec<(&Adapter, f32)> = lora.into_iter().map(|adapter| (adapter, 1.0)).collect();
    let [own, plain] = mixed(file.to_vec(), first);
    let format = |part: &str| own.tensor(&format!("blk.0.{part}.weight")).map(|t| t.dtype());
    for fused in [&["attn_q", "attn_k", "attn_v"][..], &["ffn_gate", "ffn_up"]] {
        let formats: BTreeSet<_> =
            fused.iter().map(|part| format(part).expect("a matrix").name()).collect();
        assert_eq!(formats.len(), fused.len(), "{fused:?} have formats of their own");
    }
    let formats = own.tensors().iter().map(|tensor| tensor.dtype().name()).collect();
    let wanted = logits(&load(plain, &Device::Cpu), &attached, &ids, 512, FactorType::F32);
    let largest = wanted.iter().fold(1.0, |most: f32, x| most.max(x.abs()));
    for device in devices() {
        let [own, _] = mixed(file.to_vec(), first);
        let model = load(own, &device);
        for chunk in [1, 512] {
            let made = logits(&model, &attached, &ids, chunk, FactorType::F32);
            let off = largest_difference(&made, &wanted);
            let device = device.name();
            assert!(off < TOLERANCE * largest, "{name} on {device}, {chunk}: {off} of {largest}");
        }
    }
    formats
}

#[test]
fn mixed_formats_equal_their_values() {
    let name = "tiny-e2b-Q4_K_M";
    let file = golden(&format!("gguf/{name}.gguf"));
    let mut formats = check(name, &file, 0, None);
    formats.extend(check(name, &file, 13, None));
    assert_eq!(formats.len(), FORMATS.len(), "{formats:?}");
}

#[test]
fn mixed_formats_with_an_adapter_equal_their_values() {
    let name = "tiny-e2b-Q4_K_M";
    let file = golden(&format!("gguf/{name}.gguf"));
    check(name, &file, 7, Some(&adapter("tiny-e2b-lora-F32")));
}

#[test]
fn experts_of_mixed_formats_equal_their_values() {
    let name = "tiny-moe-Q4_K_M";
    let fused = golden(&format!("gguf/{name}.gguf"));
    check(name, &fused, 3, None);
    check(name, &with_separate_gates(&fused), 18, None);
}
