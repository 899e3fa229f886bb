//! Several tokens, each as in a dispatch of its own.

use rullama_gguf::DType;

use super::{Back, Front, fused_linear, there_and_back};
use crate::{
    graph::Graph,
    suite::{Case, random_bits},
};

pub(super) fn cases() -> Vec<Case> {
    let branch = Front::Branch { scaled: true, next: true };
    let mut cases = Vec::new();
    for (front, back, dtype, [t, rows, width]) in [
        (Front::Rows, Back::Plain, DType::Q8_0, [2, 41, 96]),
        (Front::Rows, Back::Geglu, DType::F16, [3, 8, 17]),
        (Front::Rows, Back::GeluMul, DType::F32, [8, 9, 64]),
        (Front::Norm, Back::Plain, DType::Q4_0, [5, 515, 64]),
        (branch, Back::Geglu, DType::Q8_0, [5, 520, 96]),
        (branch, Back::Plain, DType::BF16, [7, 513, 64]),
        (Front::Branch { scaled: false, next: false }, Back::GeluMul, DType::Q4_1, [6, 257, 256]),
    ] {
        cases.push(batch_invariant(fused_linear(front, back, dtype, [t, rows, width]), t));
    }
    for dtype in [DType::Q4_K, DType::Q6_K] {
        cases.push(batch_invariant(there_and_back(dtype, [4, 32, 512]), 4));
        let case = fused_linear(branch, Back::Geglu, dtype, [5, 520, 512]);
        let half = || random_bits(dtype, [260, 512]);
        cases.push(batch_invariant(case.given("gate", half()).given("up", half()), 5));
        let case = fused_linear(branch, Back::Geglu, dtype, [3, 24, 512]);
        let half = || random_bits(dtype, [12, 512]);
        cases.push(batch_invariant(case.given("gate", half()).given("up", half()), 3));
        let case = fused_linear(Front::Rows, Back::Plain, dtype, [5, 37, 1536]);
        cases.push(batch_invariant(case.given("w", random_bits(dtype, [37, 1536])), 5));
    }
    cases
}

pub(super) fn batch_invariant(mut case: Case, tokens: usize) -> Case {
    case.name = format!("apart, {}", case.name);
    let build = case.build;
    case.build = Box::new(move |g: &mut Graph| {
        *g = Graph::new_batch_invariant();
        build(g)
    });
    case.step(0, tokens as u32)
}
