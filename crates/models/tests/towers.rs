//! Dispatch counts of the vision tower on several kinds of devices; no device is needed.

use std::collections::HashMap;

use rullama_engine::gpu::{DeviceFacts, MatrixUnits, dispatch_count};
use rullama_gguf::DType;
use rullama_models::{
    Catalog,
    gemma4::{
        Clamps,
        vision::{Grid, VisionConfig, tower},
    },
};

/// The vision tower of E2B.
const IMAGES: VisionConfig = VisionConfig {
    layers: 16,
    width: 768,
    heads: 12,
    ffn: 3072,
    eps: 1e-6,
    patch: 16,
    pool: 3,
    positions: 10_240,
    out: 1536,
};

/// Limits of all matmuls: matmul `i` clamps input and output to ±`most(i)`.
fn limits(most: impl Fn(usize) -> f32) -> Clamps {
    let matmuls = IMAGES.clamped_linears();
    let packed: Vec<f32> =
        (0..matmuls.len()).flat_map(|i| [-most(i), most(i), -most(i), most(i)]).collect();
    Clamps::new(&matmuls, &HashMap::new(), &packed)
}

#[test]
fn dispatches_of_an_image() {
    let units = DeviceFacts {
        f16: true,
        subgroups: Some((32, 32)),
        matrix: Some(MatrixUnits::Wgpu16),
        workgroup_bytes: 48 << 10,
        binding_bytes: 4 << 30,
        buffer_bytes: 4 << 30,
        ..DeviceFacts::floor()
    };
    let plain = DeviceFacts { matrix: None, ..units.clone() };
    let (same, different) = (limits(|_| 9.0), limits(|i| 9.0 + i as f32));
    let catalog =
        Catalog::imagined(&IMAGES.expected(), |tensor| (!tensor.optional).then_some(DType::F16));
    // Stacked gate and up outputs of the largest images exceed its binding size.
    let least = DeviceFacts { subgroups: Some((32, 32)), ..DeviceFacts::floor() };
    let grid = Grid { columns: 57, rows: 42 };
    // Dispatches per layer, and outside the layers.
    for (name, clamps, facts, each, around) in [
        ("matrix units, same limits", &same, &units, 10, 8),
        ("matrix units, different limits", &different, &units, 10, 8),
        ("same limits", &same, &plain, 10, 7),
        ("different limits", &different, &plain, 10, 7),
        ("different limits on a small device", &different, &least, 12, 7),
    ] {
        let graph = tower(&IMAGES, &catalog, clamps, grid, facts.binding_bytes).graph;
        assert_eq!(dispatch_count(&graph, facts), each * IMAGES.layers + around, "{name}");
    }
}
