//! What towers take on devices of several kinds, without any.

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

/// As in E2B.
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

/// Limits of all products; the most that a product takes or gives is `most` of its number.
fn limits(most: impl Fn(usize) -> f32) -> Clamps {
    let products = IMAGES.products();
    let packed: Vec<f32> =
        (0..products.len()).flat_map(|i| [-most(i), most(i), -most(i), most(i)]).collect();
    Clamps::new(&products, &HashMap::new(), &packed)
}

#[test]
fn dispatches_of_a_image() {
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
    let (alike, different) = (limits(|_| 9.0), limits(|i| 9.0 + i as f32));
    let catalog =
        Catalog::imagined(&IMAGES.expected(), |tensor| (!tensor.optional).then_some(DType::F16));
    // Gate and up of the largest images are too much for it at once.
    let least = DeviceFacts { subgroups: Some((32, 32)), ..DeviceFacts::floor() };
    let grid = Grid { columns: 57, rows: 42 };
    // Per layer, and around them.
    for (name, clamps, facts, each, around) in [
        ("matrix units, products that take the same", &alike, &units, 10, 9),
        ("matrix units", &different, &units, 10, 9),
        ("products that take the same", &alike, &plain, 10, 7),
        ("others", &different, &plain, 10, 7),
        ("others on a small device", &different, &least, 12, 7),
    ] {
        let graph = tower(&IMAGES, &catalog, clamps, grid, facts.binding_bytes).graph;
        assert_eq!(dispatch_count(&graph, facts), each * IMAGES.layers + around, "{name}");
    }
}
