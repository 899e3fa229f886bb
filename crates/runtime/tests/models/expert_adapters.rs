//! Adapters of experts and routers against models with merged weights.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_adapter::{Adapter, Format, Pair};
use rullama_engine::executor::Device;
use rullama_gguf::{DType, Gguf, TensorInfo, Writer, quant};
use rullama_runtime::{Model, adapters::FactorType, model::LoadOptions};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::{
    adapters::{largest_difference, logits},
    golden::{Golden, devices},
};

const MODEL: &str = "micro-moe-Q8_0";
/// Padded to a multiple of four on the device.
const RANK: usize = 3;

fn open(bytes: &[u8]) -> Gguf {
    let source = MemorySource::new("test", bytes.to_vec());
    block_on(Gguf::open(Rc::new(source))).expect("the file opens")
}

fn load(bytes: &[u8], device: &Device, host_experts: usize) -> Model {
    let options = LoadOptions { host_experts: Some(host_experts), ..LoadOptions::default() };
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(open(bytes), device.clone(), &options, &mut go_on)).expect("it loads")
}

/// A tensor for a file.
type Tensor = (String, Vec<u64>, DType, Vec<u8>);

/// A file with some tensors replaced.
fn rewritten(file: &[u8], each: impl Fn(&Gguf, &TensorInfo) -> Option<Vec<Tensor>>) -> Vec<u8> {
    let gguf = open(file);
    let mut writer = Writer::new();
    for entry in gguf.metadata().iter() {
        writer = writer.kv(entry.key.clone(), entry.value.clone());
    }
    for info in gguf.tensors() {
        let same = || {
            let bytes = block_on(gguf.read(info, 0..info.nbytes())).expect("bytes");
            vec![(info.name().to_owned(), info.dims().to_vec(), info.dtype(), bytes.to_vec())]
        };
        for (name, dims, dtype, bytes) in each(&gguf, info).unwrap_or_else(same) {
            writer = writer.tensor(name, &dims, dtype, bytes);
        }
    }
    writer.finish().expect("a file")
}

/// The same model with gate and up projections as separate tensors.
pub(crate) fn with_separate_gates(file: &[u8]) -> Vec<u8> {
    rewritten(file, |gguf, info| {
        let front = info.name().strip_suffix("ffn_gate_up_exps.weight")?;
        let &[columns, rows, experts] = info.dims() else { panic!("{:?}", info.dims()) };
        let bytes = block_on(gguf.read(info, 0..info.nbytes())).expect("bytes");
        let half = bytes.len() / (2 * experts as usize);
        let part = |which: usize| bytes.chunks_exact(half).skip(which).step_by(2).flatten();
        let name = ["ffn_gate_exps", "ffn_up_exps"].map(|name| format!("{front}{name}.weight"));
        let tensor = |(which, name): (usize, String)| {
            let dims = vec![columns, rows / 2, experts];
            (name, dims, info.dtype(), part(which).copied().collect())
        };
        Some(name.into_iter().enumerate().map(tensor).collect())
    })
}

/// Distinct values, at most this large.
fn numbers(count: usize, seed: usize, most: f32) -> Vec<f32> {
    let number = |i: usize| ((i * 7919 + seed * 104_729) % 1009) as f32 / 504.0 - 1.0;
    (0..count).map(|i| number(i) * most).collect()
}

/// An adapter for all experts and routers of a file.
fn adapter(file: &[u8]) -> Adapter {
    let mut pairs = Vec::new();
    for (seed, info) in open(file).tensors().iter().enumerate() {
        let router = info.name().ends_with("ffn_gate_inp.weight");
        if !router && !info.name().ends_with("_exps.weight") {
            continue;
        }
        let (columns, rows) = (info.dims()[0] as usize, info.dims()[1] as usize);
        let experts = info.dims().get(2).map_or(1, |experts| *experts as usize);
        pairs.push(Pair {
            tensor: info.name().into(),
            experts,
            rank: RANK,
            rows,
            columns,
            a: numbers(experts * RANK * columns, seed, 0.3),
            b: numbers(experts * rows * RANK, seed + 1, if router { 0.1 } else { 0.3 }),
            scale: 0.5,
        });
    }
    let adapter = Adapter {
        name: "test".into(),
        format: Format::Gguf,
        architecture: Some("gemma4".into()),
        base_model: None,
        pairs,
        ignored: Vec::new(),
    };
    let bytes = adapter.to_gguf().expect("a file");
    block_on(Adapter::read(Rc::new(MemorySource::new("test", bytes)), None)).expect("an adapter")
}

fn merged(file: &[u8], adapter: &Adapter) -> Vec<u8> {
    rewritten(file, |gguf, info| {
        let pair = adapter.pairs.iter().find(|pair| pair.tensor == info.name())?;
        let mut rows = block_on(gguf.rows_f32(info, 0..info.rows())).expect("rows");
        pair.add_to(0, &mut rows);
        let bytes = quant::quantize(DType::F32, &rows).expect("floats");
        Some(vec![(info.name().to_owned(), info.dims().to_vec(), DType::F32, bytes)])
    })
}

#[test]
fn expert_adapters_equal_merged_weights() {
    let fused = golden(&format!("gguf/{MODEL}.gguf"));
    let ids = Golden::lora(MODEL).ids("medium.ids");
    for file in [with_separate_gates(&fused), fused] {
        let adapter = adapter(&file);
        let whole = load(&merged(&file, &adapter), &Device::Cpu, 0);
        let wanted = logits(&whole, &[], &ids, 512, FactorType::F32);
        for device in devices() {
            let host = if matches!(device, Device::Gpu(_)) { vec![0, 1] } else { vec![0] };
            for host in host {
                let model = load(&file, &device, host);
                let place = format!("{} experts of {host} layers on the host", device.name());
                for chunk in [1, 512] {
                    let made = logits(&model, &[(&adapter, 1.0)], &ids, chunk, FactorType::F32);
                    let off = largest_difference(&made, &wanted);
                    assert!(off < 1e-3, "{place}, by {chunk}: {off}");
                }
                let plain = logits(&model, &[(&adapter, 0.0)], &ids, 512, FactorType::F32);
                assert!(largest_difference(&plain, &wanted) > 0.1, "{place}: nothing changed");
            }
        }
    }
}

#[test]
fn f16_factors_and_sums_of_expert_adapters() {
    let file = golden(&format!("gguf/{MODEL}.gguf"));
    let (ids, adapter) = (Golden::lora(MODEL).ids("short.ids"), adapter(&file));
    for device in devices() {
        let model = load(&file, &device, 0);
        let one = logits(&model, &[(&adapter, 1.0)], &ids, 1, FactorType::F32);
        let parts = [(&adapter, 0.75), (&adapter, 0.25)];
        let sum = logits(&model, &parts, &ids, 512, FactorType::F32);
        assert!(largest_difference(&one, &sum) < 1e-3, "{}", device.name());
        let halves = logits(&model, &[(&adapter, 1.0)], &ids, 512, FactorType::F16);
        assert!(largest_difference(&one, &halves) < 0.1, "{}", device.name());
    }
}
