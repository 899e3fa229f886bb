//! Several tokens, each computed as in a graph with that token alone.

use rullama_gguf::DType;

use super::{EpilogueKind, PrologueKind, fused_linear, up_and_down};
use crate::{
    graph::Graph,
    suite::{Case, random_bits},
};

pub(super) fn cases() -> Vec<Case> {
    let branch = PrologueKind::Branch { scaled: true, next: true };
    let mut cases = Vec::new();
    for (prologue_kind, epilogue_kind, dtype, [t, rows, width]) in [
        (PrologueKind::Rows, EpilogueKind::Plain, DType::Q8_0, [2, 41, 96]),
        (PrologueKind::Rows, EpilogueKind::Geglu, DType::F16, [3, 8, 17]),
        (PrologueKind::Rows, EpilogueKind::GeluMul, DType::F32, [8, 9, 64]),
        (PrologueKind::Norm, EpilogueKind::Plain, DType::Q4_0, [5, 515, 64]),
        (branch, EpilogueKind::Geglu, DType::Q8_0, [5, 520, 96]),
        (branch, EpilogueKind::Plain, DType::BF16, [7, 513, 64]),
        (
            PrologueKind::Branch { scaled: false, next: false },
            EpilogueKind::GeluMul,
            DType::Q4_1,
            [6, 257, 256],
        ),
    ] {
        cases.push(batch_invariant(
            fused_linear(prologue_kind, epilogue_kind, dtype, [t, rows, width]),
            t,
        ));
    }
    for dtype in [DType::Q4_K, DType::Q6_K] {
        cases.push(batch_invariant(up_and_down(dtype, [4, 32, 512]), 4));
        let case = fused_linear(branch, EpilogueKind::Geglu, dtype, [5, 520, 512]);
        let half = || random_bits(dtype, [260, 512]);
        cases.push(batch_invariant(case.given("gate", half()).given("up", half()), 5));
        let case = fused_linear(branch, EpilogueKind::Geglu, dtype, [3, 24, 512]);
        let half = || random_bits(dtype, [12, 512]);
        cases.push(batch_invariant(case.given("gate", half()).given("up", half()), 3));
        let case = fused_linear(PrologueKind::Rows, EpilogueKind::Plain, dtype, [5, 37, 1536]);
        cases.push(batch_invariant(case.given("w", random_bits(dtype, [37, 1536])), 5));
    }
    // Groups of 8 tokens.
    for (prologue_kind, epilogue_kind, dtype, [t, rows, width]) in [
        (PrologueKind::Rows, EpilogueKind::Plain, DType::Q4_K, [16, 520, 512]),
        (branch, EpilogueKind::Geglu, DType::Q8_0, [24, 520, 96]),
        (PrologueKind::Norm, EpilogueKind::Softcap, DType::Q4_K, [16, 520, 512]),
    ] {
        let case = fused_linear(prologue_kind, epilogue_kind, dtype, [t, rows, width]);
        cases.push(batch_invariant(case, t));
    }
    cases
}

pub(super) fn batch_invariant(mut case: Case, tokens: usize) -> Case {
    case.name = format!("batch-invariant, {}", case.name);
    let build = case.build;
    case.build = Box::new(move |g: &mut Graph| {
        *g = Graph::new_batch_invariant();
        build(g)
    });
    case.step(0, tokens as u32)
}
