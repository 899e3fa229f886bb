//! Logits, losses and greedy continuations.

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::{Model, session::DeviceSampling};

use crate::golden::{Golden, MODELS, PROMPTS, all_devices, devices, exact, model};

/// Tolerance of the reference for f32 activations.
const TOLERANCE: f32 = 1e-3;

#[test]
fn logits_of_every_model_and_prompt() {
    for device in devices() {
        for name in MODELS {
            let (model, golden) = (model(name, &device), Golden::of(name));
            for prompt in PROMPTS {
                check_logits(
                    &model,
                    &golden,
                    prompt,
                    &format!("{name} {prompt} on {}", device.name()),
                );
            }
        }
    }
}

#[test]
fn logits_on_every_adapter() {
    for device in all_devices() {
        for name in ["micro-e2b-Q8_0", "micro-moe-BF16"] {
            let (model, golden) = (model(name, &device), Golden::of(name));
            check_logits(&model, &golden, "medium", &format!("{name} on {}", device.name()));
        }
    }
}

#[test]
fn greedy_continuations_of_every_model_and_prompt() {
    for device in devices() {
        for name in MODELS {
            let (model, golden) = (model(name, &device), Golden::of(name));
            for prompt in PROMPTS.into_iter().filter(|prompt| continued(name, prompt, &device)) {
                check_greedy(
                    &model,
                    &golden,
                    prompt,
                    &format!("{name} {prompt} on {}", device.name()),
                );
            }
        }
    }
}

/// Whether greedy tokens are checked. Software GPUs are slow, and logits are checked on them: there only the longest prompt, which
/// exceeds the window, of one model per kind.
fn continued(model: &str, prompt: &str, device: &Device) -> bool {
    let samples = ["tiny-e2b-Q4_K_M", "micro-moe-Q8_0", "micro-g3p-Q4_0", "micro-llama-Q4_1"];
    let sample = samples.contains(&model) && prompt == "long";
    matches!(device, Device::Cpu) || sample
}

pub(crate) fn check_logits(model: &Model, golden: &Golden, prompt: &str, what: &str) {
    let ids = golden.ids(&format!("{prompt}.ids"));
    let mut session = model.session(&exact()).expect("a session");
    session.extend(&ids).expect("the prompt fits");
    let mut logits = Vec::new();
    block_on(session.all_logits(&mut |rows| logits.extend_from_slice(rows))).expect("logits");
    let width = model.config().vocabulary;
    let reference = golden.f32(&format!("{prompt}.logits"));
    for (row, position) in golden.ids(&format!("{prompt}.positions")).into_iter().enumerate() {
        let (made, wanted) =
            (&logits[position as usize * width..][..width], &reference[row * width..][..width]);
        let worst = made.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < TOLERANCE, "{what}: position {position} is off by {worst}");
    }
    for (i, wanted) in golden.f32(&format!("{prompt}.nll")).into_iter().enumerate() {
        let row = &logits[i * width..][..width];
        let largest = row.iter().copied().fold(f32::MIN, f32::max);
        let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
        let made = sum.ln() - f64::from(row[ids[i + 1] as usize] - largest);
        assert!(
            (made - f64::from(wanted)).abs() < 2e-3,
            "{what}: loss {i} is {made}, not {wanted}"
        );
    }
}

pub(crate) fn check_greedy(model: &Model, golden: &Golden, prompt: &str, what: &str) {
    let mut session = model.session(&exact()).expect("a session");
    session.extend(&golden.ids(&format!("{prompt}.ids"))).expect("the prompt fits");
    let margins = golden.f32(&format!("{prompt}.greedy_margin"));
    for (i, wanted) in golden.ids(&format!("{prompt}.greedy")).into_iter().enumerate() {
        if margins[i] < TOLERANCE {
            break;
        }
        let token = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
        assert_eq!(token, Some(wanted), "{what}: token {i}");
    }
}
