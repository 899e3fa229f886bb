//! Linear layers whose rows have different adapters, or none.

use rullama_gguf::DType;

use super::{
    EpilogueKind, PrologueKind, batch_invariant::batch_invariant, prologue_of, tolerance, weight,
};
use crate::{
    graph::{Graph, Member, Type, Value},
    ops::{
        Epilogue, LoraPair, Prologue, SlotFactors,
        matmul::lora::slots::cases::{factors, sequences, slots_of},
    },
    suite::{Case, random_bits},
};

pub(super) fn cases() -> Vec<Case> {
    let branch = PrologueKind::Branch { scaled: true, next: true };
    let last = PrologueKind::Branch { scaled: false, next: false };
    let mut cases = Vec::new();
    for (prologue_kind, epilogue_kind, dtypes, sizes, adapters) in [
        (PrologueKind::Rows, EpilogueKind::Plain, [DType::Q8_0, DType::F32], [41, 96, 4], &[1][..]),
        (PrologueKind::Rows, EpilogueKind::Geglu, [DType::F16, DType::F32], [8, 17, 8], &[2, 0, 1]),
        (
            PrologueKind::Norm,
            EpilogueKind::Plain,
            [DType::Q4_0, DType::F16],
            [515, 64, 20],
            &[3, 0, 1, 2, 3],
        ),
        (
            PrologueKind::Norm,
            EpilogueKind::Softcap,
            [DType::Q8_0, DType::F16],
            [520, 96, 16],
            &[0, 2],
        ),
        (
            PrologueKind::PlainBranch,
            EpilogueKind::Swiglu,
            [DType::Q8_0, DType::F16],
            [24, 96, 8],
            &[1, 0],
        ),
        (branch, EpilogueKind::Geglu, [DType::Q8_0, DType::F16], [520, 96, 48], &[1, 2, 0, 0, 4]),
        (
            branch,
            EpilogueKind::Plain,
            [DType::BF16, DType::F32],
            [513, 64, 4],
            &[0, 1, 0, 2, 0, 1, 2],
        ),
        (
            last,
            EpilogueKind::GeluMul,
            [DType::Q4_1, DType::F16],
            [257, 256, 8],
            &[1, 1, 0, 2, 3, 0],
        ),
        (
            PrologueKind::Rows,
            EpilogueKind::GeluMul,
            [DType::F32, DType::F32],
            [9, 64, 12],
            &[1, 0, 0, 2, 0, 0, 0, 8],
        ),
        // No row has an adapter; all rows have the same one; one row.
        (branch, EpilogueKind::Plain, [DType::Q8_0, DType::F16], [40, 96, 8], &[0, 0, 0]),
        (branch, EpilogueKind::Geglu, [DType::Q8_0, DType::F16], [40, 96, 8], &[2, 2, 2]),
        (branch, EpilogueKind::Plain, [DType::Q8_0, DType::F16], [40, 96, 8], &[3]),
        // Groups of 8 tokens, and more tokens than batched GEMVs take.
        (
            branch,
            EpilogueKind::Geglu,
            [DType::Q8_0, DType::F16],
            [520, 96, 8],
            &[1, 0, 2, 0, 3, 0, 4, 0, 1, 0, 2, 0, 3, 0, 4, 0],
        ),
        (
            PrologueKind::Norm,
            EpilogueKind::Plain,
            [DType::Q8_0, DType::F32],
            [40, 96, 8],
            &[1, 0, 2, 1, 0, 2, 1, 0, 2],
        ),
    ] {
        let case = linear(prologue_kind, epilogue_kind, dtypes, sizes, adapters);
        cases.push(batch_invariant(case, adapters.len()));
    }
    for dtype in [DType::Q4_K, DType::Q6_K] {
        let adapters = [2, 0, 1, 0, 3];
        let case =
            linear(branch, EpilogueKind::Geglu, [dtype, DType::F16], [520, 512, 16], &adapters);
        let half = || random_bits(dtype, [260, 512]);
        cases.push(batch_invariant(case.given("gate", half()).given("up", half()), 5));
        let case = linear(
            PrologueKind::Rows,
            EpilogueKind::Plain,
            [dtype, DType::F16],
            [37, 1536, 8],
            &adapters,
        );
        cases.push(batch_invariant(case.given("w", random_bits(dtype, [37, 1536])), 5));
        for adapters in [&[1][..], &[1, 0, 2, 1]] {
            cases.push(batch_invariant(up_and_down(dtype, [32, 512, 8], adapters), adapters.len()));
        }
    }
    // GEMM tiles.
    let adapters: Vec<u32> = (0..32).map(|i| i % 5).collect();
    cases.push(
        linear(branch, EpilogueKind::Geglu, [DType::Q8_0, DType::F16], [40, 96, 8], &adapters)
            .step(0, 32),
    );
    cases
}

fn pair(factors: SlotFactors) -> LoraPair {
    let SlotFactors { a, b, sequences } = factors;
    LoraPair { a, b, folded_row: 0, sequences: Some(sequences) }
}

fn linear(
    prologue_kind: PrologueKind,
    epilogue_kind: EpilogueKind,
    [dtype, factor_dtype]: [DType; 2],
    [rows, width, rank]: [usize; 3],
    adapters: &[u32],
) -> Case {
    let (t, slots) = (adapters.len(), slots_of(adapters));
    let build = move |g: &mut Graph| {
        let prologue = prologue_of(g, prologue_kind, t, width);
        let (weight, epilogue) = weight(g, epilogue_kind, dtype, [t, rows, width]);
        let pair = pair(factors(g, factor_dtype, (t, slots), [rows, width, rank]));
        let (h1, y) = g.fused_linear_lora(&prologue, weight, Some(&pair), &epilogue);
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name = format!(
        "{prologue_kind:?} {} {t}x{width} to {rows} {epilogue_kind:?} with {} of rank {rank}, slots {adapters:?}",
        dtype.name(),
        factor_dtype.name()
    );
    let tolerance = tolerance(width + rank);
    Case::new("fused_linear", name, build)
        .given("sequences", sequences(adapters))
        .tolerance(tolerance)
}

/// A feed-forward part: activations between its two linear layers are in the layout of the second one's weight.
fn up_and_down(dtype: DType, [width, inner, rank]: [usize; 3], adapters: &[u32]) -> Case {
    let (t, slots) = (adapters.len(), slots_of(adapters));
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, width]));
        let half = |name: &str| Member::new(name, inner);
        let gate_up = g.weight_rows(&[half("gate"), half("up")], DType::Q8_0, width);
        let both = g.linear_geglu(x, gate_up);
        let down = g.weight("down0", Type::weight(dtype, [width, inner]));
        let pair = pair(factors(g, DType::F16, (t, slots), [width, inner, rank]));
        vec![g.fused_linear_lora(&Prologue::Rows(both), down, Some(&pair), &Epilogue::Plain).1]
    };
    let name =
        format!("{t} x {} gated {width} to {inner} and back with slots {adapters:?}", dtype.name());
    Case::new("fused_linear", name, build)
        .given("sequences", sequences(adapters))
        .given("down0", random_bits(dtype, [width, inner]))
        .tolerance(tolerance(width * inner + rank))
}
