//! Gradients and 20 steps of the golden adapters, with all activations kept and with all layers recomputed.

use pollster::block_on;
use rullama_adapter::Pair;
use rullama_engine::{executor::Device, gpu::STAGING_BYTES};
use rullama_train::{Example, Settings, Shape, TrainError, Trainer};

use crate::golden::{Golden, adapter, devices, model, without_b};

/// Relative error of a gradient matrix, by Frobenius norms.
const GRADIENT: f64 = 1e-3;
/// Relative error of a point of a loss curve.
const CURVE: f64 = 1e-3;

const SETTINGS: Settings = Settings {
    dropout: 0.0,
    clip: None,
    decay: 0.01,
    beta1: 0.9,
    beta2: 0.999,
    eps: 1e-8,
    memory: None,
    micro_batch: 1,
};

fn trainer(name: &str, start: &str, device: &Device, memory: Option<u64>) -> (Trainer, Golden) {
    let golden = Golden::of(name);
    let family = name.rsplit_once('-').map_or(name, |(family, _)| family);
    let adapter = match start {
        "zero_b" => without_b(adapter(family)),
        _ => adapter(family),
    };
    let example = golden.example();
    // Longer than the sequence: the rest is padding.
    let shape = Shape { tokens: example.ids.len() + 3, targets: example.targets() + 1 };
    let settings = Settings { memory, ..SETTINGS };
    let trainer = block_on(Trainer::new(&model(name, device), &adapter, shape, settings));
    (trainer.expect("a trainer"), golden)
}

fn check(name: &str, start: &str, device: &Device, memory: Option<u64>, steps: usize) -> Vec<f64> {
    let what = format!("{name} {start} on {}", device.name());
    let (mut trainer, golden) = trainer(name, start, device, memory);
    let example = golden.example();
    let wanted = golden.values(&format!("train.{start}.loss_curve"));
    let mut losses = Vec::new();
    for step in 0..steps {
        losses.push(block_on(trainer.gradients_of(&[&example], 0)).expect("gradients"));
        if step == 0 {
            check_gradients(&trainer, &golden, start, &what);
        }
        trainer.update(2e-3).expect("an update");
    }
    losses.push(block_on(trainer.loss_of(&[&example])).expect("a loss"));
    let worst = losses.iter().zip(&wanted).map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max);
    assert_eq!(wanted.len(), 21);
    assert!(worst < CURVE, "{what}: {losses:?} instead of {wanted:?}");
    losses
}

fn check_gradients(trainer: &Trainer, golden: &Golden, start: &str, what: &str) {
    let prefix = format!("train.{start}.grad.");
    let gradients = block_on(trainer.gradients()).expect("gradients");
    let names = golden.names(&prefix);
    for name in &names {
        let wanted = golden.values(&format!("{prefix}{name}"));
        let (_, _, found) = gradients.iter().find(|(found, ..)| found == name).expect(name);
        assert_eq!(found.len(), wanted.len(), "{what}: {name}");
        let norm = wanted.iter().map(|x| x * x).sum::<f64>().sqrt();
        let error: f64 = found.iter().zip(&wanted).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
        let error = error.sqrt();
        // A zero reference gradient is compared absolutely.
        let relative = if norm > 0.0 { error / norm } else { error };
        assert!(relative < GRADIENT, "{what}: {name} is off by {relative:.1e}");
    }
    assert!(start != "random_b" || !names.is_empty(), "{what}: no gradients to compare");
}

/// Both curves on the CPU, and `steps_on_gpus` steps of one on each GPU: software GPUs are slow.
fn check_everywhere(name: &str, steps_on_gpus: &[usize]) {
    let devices = devices();
    let (cpu, gpus) = devices.split_first().expect("the CPU comes first");
    check(name, "random_b", cpu, None, 20);
    check(name, "zero_b", cpu, None, 20);
    for (gpu, steps) in gpus.iter().zip(steps_on_gpus) {
        check(name, "random_b", gpu, None, *steps);
    }
}

#[test]
fn dense_model_with_shared_kv_and_per_layer_inputs() {
    check_everywhere("micro-e2b-Q8_0", &[20, 2]);
}

#[test]
fn mixture_of_experts_with_keys_as_values() {
    check_everywhere("micro-moe-Q8_0", &[3]);
}

#[test]
fn wider_model_with_k_quants() {
    check_everywhere("tiny-e2b-Q4_K_M", &[3]);
}

/// Sequences of a batch that are computed in one pass have the loss and the gradients they have one by one.
#[test]
fn batches_in_one_pass() {
    for device in devices().iter().take(2) {
        let (golden, model) = (Golden::of("micro-e2b-Q8_0"), model("micro-e2b-Q8_0", device));
        let whole = golden.example();
        let part = |length: usize| Example::after_prompt(whole.ids[..length].to_vec(), 2);
        let batch = [whole.clone(), part(7), part(11), part(5)];
        let batch: Vec<&Example> = batch.iter().collect();
        let shape = Shape { tokens: whole.ids.len(), targets: whole.ids.len() };
        let start = adapter("micro-e2b");
        let gradients = |micro_batch: usize| {
            let settings = Settings { micro_batch, ..SETTINGS };
            let trainer = Trainer::new(&model, &start, shape, settings);
            let mut trainer = block_on(trainer).expect("a trainer");
            assert_eq!(trainer.need().micro_batch, micro_batch);
            let loss = block_on(trainer.gradients_of(&batch, 0)).expect("gradients");
            (loss, block_on(trainer.gradients()).expect("gradients"))
        };
        let (loss, wanted) = gradients(1);
        // Two passes of two sequences each, or of three and one; then one pass.
        for micro_batch in [2, 4] {
            let (found_loss, found) = gradients(micro_batch);
            assert!((found_loss - loss).abs() < 1e-5 * loss, "{found_loss} instead of {loss}");
            for ((name, _, wanted), (_, _, found)) in wanted.iter().zip(found) {
                let square = |x: f32| f64::from(x) * f64::from(x);
                let norm: f64 = wanted.iter().map(|x| square(*x)).sum();
                let error: f64 = found.iter().zip(wanted).map(|(a, b)| square(a - b)).sum();
                // Sums of the same products in another order.
                assert!(error.sqrt() <= 1e-5 * norm.sqrt(), "{name} on {}", device.name());
            }
        }
    }
}

#[test]
fn memory_stays_within_the_estimate() {
    for device in devices().iter().skip(1).take(1) {
        let Device::Gpu(gpu) = device else { continue };
        for memory in [None, Some(1)] {
            let before = gpu.allocated().now;
            // A budget of one byte gives an error with the minimum, which is then the budget.
            let golden = Golden::of("micro-e2b-Q8_0");
            let model = model("micro-e2b-Q8_0", device);
            let shape = Shape { tokens: 64, targets: 32 };
            let settings = |memory| Settings { memory, dropout: 0.1, clip: Some(1.0), ..SETTINGS };
            let new = |memory| {
                let adapter = adapter("micro-e2b");
                block_on(Trainer::new(&model, &adapter, shape, settings(memory)))
            };
            let trainer = match new(memory) {
                Err(TrainError::DoesNotFit { need, .. }) => new(Some(need)),
                other => other,
            };
            let mut trainer = trainer.expect("the minimum fits");
            let example = golden.example();
            block_on(trainer.gradients_of(&[&example], 0)).expect("gradients");
            trainer.update(1e-3).expect("an update");
            block_on(trainer.loss_of(&[&example])).expect("a loss");
            block_on(trainer.adapter()).expect("an adapter");
            let (held, need) = (gpu.allocated().now - before, trainer.need().total());
            assert!(held <= need, "{held} bytes instead of {need}");
            // Only a small part of the staging buffers' budget is in use here.
            let exact = need - STAGING_BYTES;
            assert!(held * 100 >= exact * 95, "{held} bytes of {exact}");
        }
    }
}

#[test]
fn adapters_of_the_router_are_refused_by_name() {
    let mut adapter = adapter("micro-moe");
    let tensor = "blk.0.ffn_gate_inp.weight".to_owned();
    let pair = Pair { tensor, rows: 8, columns: 64, b: vec![0.0; 32], ..adapter.pairs[0].clone() };
    adapter.pairs.push(Pair { a: vec![0.0; 4 * 64], ..pair });
    let model = model("micro-moe-Q8_0", &Device::Cpu);
    let shape = Shape { tokens: 4, targets: 2 };
    let error = block_on(Trainer::new(&model, &adapter, shape, SETTINGS)).expect_err("a router");
    assert!(matches!(error, TrainError::NotTrained { count: 1, .. }), "{error}");
    assert!(error.to_string().contains("ffn_gate_inp"), "{error}");
}

#[test]
fn recomputed_layers_change_nothing_and_save_memory() {
    for device in devices().iter().take(2) {
        let (kept, _) = trainer("micro-e2b-Q8_0", "random_b", device, None);
        // One byte less than keeping all activations takes.
        let budget = Some(kept.need().total() - 1);
        let (less, _) = trainer("micro-e2b-Q8_0", "random_b", device, budget);
        assert!(less.need().recomputed > 0 && less.need().total() < kept.need().total());
        let kept = check("micro-e2b-Q8_0", "random_b", device, None, 2);
        let recomputed = check("micro-e2b-Q8_0", "random_b", device, budget, 2);
        assert_eq!(kept, recomputed, "on {}", device.name());
    }
}
