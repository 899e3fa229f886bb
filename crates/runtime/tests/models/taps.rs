//! Intermediate values against golden values.

use pollster::block_on;
use rullama_runtime::session::Tap;

use crate::golden::{Golden, devices, exact, model};

/// Values reach some tens inside these models; f32 sums in any order stay well within this relative error.
const RELATIVE: f32 = 2e-5;

#[test]
fn every_stored_intermediate_is_computed() {
    for device in devices() {
        for name in [
            "micro-e2b-BF16",
            "micro-dense-BF16",
            "micro-moe-BF16",
            "tiny-moe-Q4_K_M",
            "micro-g3-BF16",
            "micro-g3p-BF16",
            "deep-g3-BF16",
            "micro-llama-Q4_1",
        ] {
            let (model, golden) = (model(name, &device), Golden::of(name));
            let mut session = model.session(&exact()).expect("a session");
            session.extend(&golden.ids("short.ids")).expect("it fits");
            let taps = block_on(session.trace()).expect("taps");
            let mut compared = 0;
            for tap in &taps {
                let names = [tap.name.clone(), llama_name(&tap.name)];
                let stored = names.map(|name| format!("mid.{name}"));
                let stored = stored.into_iter().find(|name| golden.names().contains(name));
                if let Some(stored) = stored {
                    compare(
                        tap,
                        &golden,
                        &stored,
                        &format!("{name} {stored} on {}", device.name()),
                    );
                    compared += 1;
                }
            }
            let stored = golden.names().into_iter().filter(|name| is_value(name)).count();
            assert_eq!(compared, stored, "{name}: all stored values are computed");
        }
    }
}

/// The tap's name in goldens of the Llama family.
fn llama_name(tap: &str) -> String {
    tap.replace("embed_scaled", "embed").replace("mlp_out", "ffn_out")
}

/// RoPE tables are computed and tested on the host; rotated heads are internal to attention.
fn is_value(name: &str) -> bool {
    let rotated = name.ends_with(".q_rope") || name.ends_with(".k_rope");
    name.starts_with("mid.") && !name.starts_with("mid.rope.") && !rotated
}

fn compare(tap: &Tap, golden: &Golden, stored: &str, what: &str) {
    let ids = tap.name.ends_with("topk_index");
    let wanted: Vec<f32> = if ids {
        golden.ids(stored).iter().map(|id| *id as f32).collect()
    } else {
        golden.f32(stored)
    };
    assert_eq!(tap.values.len(), wanted.len(), "{what}: {:?}", tap.shape);
    let scale = wanted.iter().fold(1.0f32, |most, x| most.max(x.abs()));
    let worst = tap.values.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= RELATIVE * scale, "{what}: off by {worst}, of {scale}");
}
