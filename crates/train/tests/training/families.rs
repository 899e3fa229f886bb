//! Training of families other than Gemma 4, which have no reference data: gradients against differences of the loss, on GPUs against the
//! CPU, and the loss against that of inference with the same adapter.

use pollster::block_on;
use rullama_adapter::{Adapter, Format};
use rullama_engine::executor::Device;
use rullama_runtime::{Model, adapters::FactorType, model::CacheType, session::SessionOptions};
use rullama_train::{AdapterOptions, Example, Settings, Shape, Trainer, fresh};

use crate::golden::{devices, model};

/// Gemma 3, SmolLM2, Llama 3 (frequency factors, an LM head of its own), Qwen 2 (biases), Qwen 3 (head norms).
const MODELS: [&str; 5] = [
    "micro-g3p-BF16",
    "micro-llama-Q4_1",
    "micro-llama3-Q8_0",
    "micro-qwen2-Q8_0",
    "micro-qwen3-Q8_0",
];
const KINDS: [&str; 7] =
    ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];
/// A step along the gradient changes the loss by about this: much more than rounding, and little enough for a straight line.
const CHANGE: f64 = 0.02;
/// Longest step, for small gradients.
const STEP: f64 = 0.05;
/// Relative error of a derivative. Rounding of the loss (1e-5) and the curvature contribute half a percent each.
const DERIVATIVE: f64 = 0.02;
/// Relative error of a gradient matrix on a GPU, as against the goldens of Gemma 4.
const GRADIENT: f64 = 1e-3;

const SETTINGS: Settings = Settings {
    dropout: 0.0,
    clip: None,
    decay: 0.0,
    beta1: 0.9,
    beta2: 0.999,
    eps: 1e-8,
    memory: None,
    micro_batch: 1,
};

/// An adapter of all projections with effect.
fn adapter(model: &Model) -> Adapter {
    let options = AdapterOptions { rank: 2, alpha: 4.0, targets: Vec::new(), seed: 3 };
    let mut adapter = fresh(model, &options).expect("an adapter");
    // In the file's order of rows, as the trainer has them.
    adapter.format = Format::Gguf;
    for (i, pair) in adapter.pairs.iter_mut().enumerate() {
        let value = |j: usize| ((i * 31 + j * 17) % 13) as f32 * 0.02 - 0.12;
        pair.b.iter_mut().enumerate().for_each(|(j, b)| *b = value(j));
    }
    adapter
}

fn example() -> Example {
    Example::after_prompt((0..24).map(|i| 20 + i * 37 % 300).collect(), 6)
}

fn trainer(model: &Model, adapter: &Adapter) -> Trainer {
    let example = example();
    let shape = Shape { tokens: example.ids.len() + 2, targets: example.targets() };
    block_on(Trainer::new(model, adapter, shape, SETTINGS)).expect("a trainer")
}

fn loss(model: &Model, adapter: &Adapter) -> f64 {
    block_on(trainer(model, adapter).loss_of(&[&example()])).expect("a loss")
}

/// Gradients of `A` and `B` of each pair, in the order of the pairs.
fn gradients(model: &Model, adapter: &Adapter) -> Vec<[Vec<f32>; 2]> {
    let mut trainer = trainer(model, adapter);
    block_on(trainer.gradients_of(&[&example()], 0)).expect("gradients");
    let all = block_on(trainer.gradients()).expect("gradients");
    let pairs = all.chunks_exact(2);
    pairs.map(|pair| [pair[0].2.clone(), pair[1].2.clone()]).collect()
}

fn squares(values: &[f32]) -> f64 {
    values.iter().map(|x| f64::from(*x).powi(2)).sum()
}

/// The adapter with the pairs of one kind moved along their gradient.
fn moved(adapter: &Adapter, gradients: &[[Vec<f32>; 2]], kind: &str, by: f64) -> Adapter {
    let mut adapter = adapter.clone();
    let add = |values: &mut [f32], gradient: &[f32]| {
        values.iter_mut().zip(gradient).for_each(|(x, g)| *x += (by * f64::from(*g)) as f32);
    };
    for (pair, [a, b]) in adapter.pairs.iter_mut().zip(gradients) {
        if pair.tensor.ends_with(&format!(".{kind}.weight")) {
            add(&mut pair.a, a);
            add(&mut pair.b, b);
        }
    }
    adapter
}

#[test]
fn gradients_equal_differences_of_the_loss() {
    for name in MODELS {
        let model = model(name, &Device::Cpu);
        let adapter = adapter(&model);
        let gradients = gradients(&model, &adapter);
        assert_eq!(gradients.len(), adapter.pairs.len(), "{name}");
        for kind in KINDS {
            let of_kind = adapter.pairs.iter().zip(&gradients);
            let of_kind =
                of_kind.filter(|(pair, _)| pair.tensor.ends_with(&format!(".{kind}.weight")));
            let norm = of_kind.map(|(_, [a, b])| squares(a) + squares(b)).sum::<f64>().sqrt();
            assert!(norm > 1e-3, "{name} {kind}: the gradient is {norm}");
            // Along the gradient, the derivative is its norm.
            let step = (CHANGE / norm).min(STEP);
            let [more, less] = [step, -step]
                .map(|step| loss(&model, &moved(&adapter, &gradients, kind, step / norm)));
            let derivative = (more - less) / (2.0 * step);
            let off = (derivative / norm - 1.0).abs();
            assert!(off < DERIVATIVE, "{name} {kind}: {derivative} instead of {norm}");
        }
    }
}

#[test]
fn gradients_on_a_gpu_equal_those_on_the_cpu() {
    let devices = devices();
    for name in MODELS {
        let [on_cpu, on_gpu] = [&devices[0], &devices[1]].map(|device| {
            let model = model(name, device);
            let adapter = adapter(&model);
            gradients(&model, &adapter).into_iter().flatten().collect::<Vec<_>>()
        });
        for (i, (cpu, gpu)) in on_cpu.iter().zip(&on_gpu).enumerate() {
            let difference: Vec<f32> = cpu.iter().zip(gpu).map(|(a, b)| a - b).collect();
            let off = (squares(&difference) / squares(cpu)).sqrt();
            assert!(off < GRADIENT, "{name}: matrix {i} is off by {off:.1e}");
        }
    }
}

#[test]
fn training_and_inference_have_the_same_loss() {
    for name in MODELS {
        for device in devices() {
            let (model, example) = (model(name, &device), example());
            let adapter = adapter(&model);
            let attached = block_on(model.attach(&[(&adapter, 1.0)], FactorType::F32));
            let attached = attached.expect("it fits");
            let options = SessionOptions {
                cache: CacheType::F32,
                context: Some(64),
                ..SessionOptions::default()
            };
            let mut session = model.session(&options).expect("a session");
            session.set_adapters(Some(&attached)).expect("the same model");
            session.extend(&example.ids).expect("it fits");
            let mut logits = Vec::new();
            block_on(session.all_logits(&mut |rows| logits.extend_from_slice(rows)))
                .expect("logits");
            let rows = logits.chunks_exact(model.config().vocabulary).zip(&example.ids[1..]);
            let losses: Vec<f64> = rows
                .zip(&example.learned[1..])
                .filter(|(_, learned)| **learned)
                .map(|((row, next), _)| {
                    let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
                    sum.ln() - f64::from(row[*next as usize])
                })
                .collect();
            let inferred = losses.iter().sum::<f64>() / losses.len() as f64;
            let trained = loss(&model, &adapter);
            let off = (inferred - trained).abs() / trained;
            assert!(off < 1e-4, "{name} on {}: {inferred} and {trained}", device.name());
        }
    }
}
