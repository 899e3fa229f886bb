//! Products with the factors of an adapter.

use rullama_gguf::DType;

use super::{Back, FRONTS, Front, start, tolerance, weight};
use crate::{
    graph::{Graph, Type, Value},
    ops::Factors,
    suite::Case,
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for front in FRONTS {
        for back in [Back::Plain, Back::Geglu, Back::GeluMul] {
            let halves = [DType::Q4_0, DType::F16];
            cases.push(product(front, back, halves, [1, 264, 64, 48]));
        }
        cases.push(product(front, Back::Plain, [DType::F32, DType::F32], [2, 8, 5, 2]).gradient());
    }
    for (front, back) in [
        (Front::Rows, Back::Plain),
        (Front::Norm, Back::Geglu),
        (Front::Branch { scaled: false, next: false }, Back::GeluMul),
    ] {
        for (dtype, factors, t, rows, width, rank) in [
            (DType::Q8_0, DType::F32, 1, 40, 96, 4),
            // Several tokens; an inner size that is no multiple of four; rows that are none of a unit.
            (DType::Q4_0, DType::F16, 3, 8, 64, 8),
            (DType::F16, DType::F32, 1, 8, 32, 3),
            (DType::F32, DType::F32, 1, 8, 17, 4),
        ] {
            cases.push(product(front, back, [dtype, factors], [t, rows, width, rank]));
        }
    }
    let branch = Front::Branch { scaled: true, next: true };
    for (front, back, dtype, rows, width, rank) in [
        // Teams of all kinds; columns as digits; too much for every workgroup to make it for itself.
        (Front::Rows, Back::Geglu, DType::Q4_0, 33_000, 64, 16),
        (Front::Norm, Back::Plain, DType::Q4_0, 33_001, 64, 16),
        (branch, Back::Geglu, DType::Q8_0, 8, 1536, 32),
        (Front::Rows, Back::Plain, DType::Q8_0, 40, 6144, 16),
        (branch, Back::Plain, DType::Q8_0, 40, 1536, 128),
    ] {
        cases.push(product(front, back, [dtype, DType::F16], [1, rows, width, rank]));
    }
    for (next, back) in [(true, Back::Plain), (true, Back::Geglu), (false, Back::GeluMul)] {
        // In front of a product without an adapter, and of one with its own; several tokens.
        let front = |rank| Front::Low { rank, next };
        cases.push(super::product(front(12), back, DType::Q8_0, [1, 40, 96]));
        cases.push(super::product(front(20), back, DType::Q8_0, [1, 40, 1536]));
        cases.push(super::product(front(4), back, DType::Q8_0, [3, 8, 64]));
        cases.push(product(front(8), back, [DType::Q8_0, DType::F16], [1, 40, 96, 4]));
        cases.push(product(front(16), back, [DType::Q8_0, DType::F16], [1, 40, 1536, 16]));
    }
    let low = Front::Low { rank: 4, next: true };
    cases.push(super::product(low, Back::Plain, DType::F32, [2, 8, 5]).gradient());
    for (dtype, factors, sizes) in [
        (DType::Q8_0, DType::F16, [1, 40, 96, 8]),
        (DType::Q8_0, DType::F32, [1, 40, 6144, 4]),
        (DType::Q4_0, DType::F16, [1, 33_000, 64, 16]),
        // Several tokens; rows that are none of a unit.
        (DType::Q4_0, DType::F16, [3, 8, 64, 8]),
        (DType::F32, DType::F32, [1, 8, 17, 4]),
    ] {
        cases.push(beside(dtype, factors, sizes));
    }
    cases.push(beside(DType::F32, DType::F32, [2, 8, 5, 4]).gradient());
    cases.extend(benches());
    cases
}

/// A product with the first factor of an adapter beside its weight.
fn beside(dtype: DType, factors: DType, [t, rows, width, rank]: [usize; 4]) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, width]));
        let weight = g.weight("w", Type::weight(dtype, [rows, width]));
        let a = g.weight("low_a", Type::weight(factors, [rank, width]));
        vec![g.product_beside(x, weight, a)]
    };
    let (dtype, factors) = (dtype.name(), factors.name());
    let name = format!("{dtype} {t}x{width} to {rows} beside {factors} of rank {rank}");
    Case::new("product", name, build).tolerance(tolerance(width))
}

/// The products of a layer of Gemma 4 E2B with rank 16: queries, keys and values; back; gate and up; down.
fn benches() -> Vec<Case> {
    let next = Front::Branch { scaled: true, next: true };
    let low = Front::Low { rank: 16, next: true };
    let halves = [DType::Q4_K, DType::F16];
    let others = [
        beside(DType::Q4_K, DType::F16, [1, 1536, 2048, 16]).bench(),
        beside(DType::Q4_K, DType::F16, [1, 1536, 12_288, 16]).bench(),
        product(low, Back::Geglu, halves, [1, 24_576, 1536, 32]).bench(),
    ];
    let shapes = [
        (next, Back::Plain, 2560, 1536, 48),
        (Front::Rows, Back::Plain, 1536, 2048, 16),
        (next, Back::Geglu, 24_576, 1536, 32),
        (Front::Rows, Back::Plain, 1536, 12_288, 16),
    ];
    let bench = |(front, back, rows, width, rank)| {
        product(front, back, [DType::Q4_K, DType::F16], [1, rows, width, rank]).bench()
    };
    shapes.map(bench).into_iter().chain(others).collect()
}

fn product(
    front: Front,
    back: Back,
    [dtype, factors]: [DType; 2],
    [t, rows, width, rank]: [usize; 4],
) -> Case {
    let build = move |g: &mut Graph| {
        let start = start(g, front, t, width);
        let (weight, finish) = weight(g, back, dtype, [t, rows, width]);
        let a = g.weight("low_a", Type::weight(factors, [rank, width]));
        let b = g.weight("low_b", Type::weight(factors, [rows, rank]));
        let (h1, y) = g.product_adapted(&start, weight, Some(&Factors { a, b }), &finish);
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name = format!(
        "{front:?} {} {t}x{width} to {rows} {back:?} with {} of rank {rank}",
        dtype.name(),
        factors.name()
    );
    Case::new("product", name, build).tolerance(tolerance(width + rank))
}
