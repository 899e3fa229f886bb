//! Quantised hand-off: GeGLU writes its output as int8 hi/lo pairs, from a weight with many rows to one with few.

use rullama_gguf::DType;

use super::{EPS, batch_invariant::batch_invariant, tolerance, with_bits};
use crate::{
    graph::{Graph, Type},
    ops::{Epilogue, FoldedDown, Prologue},
    suite::Case,
};

const ROWS: usize = 8;

pub(super) fn cases() -> Vec<Case> {
    let packed = [
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q5_1,
        DType::Q8_0,
        DType::Q4_K,
        DType::Q5_K,
        DType::Q6_K,
    ];
    let mut cases: Vec<Case> = packed.map(|dtype| after_geglu(dtype, [1, 64, 256])).into();
    for dtype in [DType::Q4_K, DType::Q6_K, DType::Q5_0] {
        // Workgroups that compute more than one half of a unit, some past the last one; several iterations; batch-invariant tokens.
        cases.push(after_geglu(dtype, [1, 256, 768]));
        cases.push(batch_invariant(after_geglu(dtype, [3, 64, 256]), 3));
        cases.push(batch_invariant(after_geglu(dtype, [5, 256, 768]), 5));
        cases.push(with_down(dtype, 256));
    }
    cases
}

/// After a norm, gate and up, then down to few rows.
pub(super) fn after_geglu(dtype: DType, [t, width, inner]: [usize; 3]) -> Case {
    let build = move |g: &mut Graph| {
        let h = g.input("h", Type::f32([t, width]));
        let weight = g.weight("next", Type::weight(DType::F32, [width]));
        let gate_up = g.weight("gate_up", Type::weight(DType::Q8_0, [2 * inner, width]));
        let prologue = Prologue::Norm { h, weight, eps: EPS };
        let x = g.fused_linear(&prologue, gate_up, &Epilogue::GEGLU).1;
        let down = g.weight("down", Type::weight(dtype, [ROWS, inner]));
        vec![g.linear(x, down)]
    };
    let name = format!("{t} x {} after GeGLU, {width} to {inner} to few", dtype.name());
    let case = Case::new("fused_linear", name, build).tolerance(tolerance(width * inner));
    with_bits(case, "down", dtype, [ROWS, inner])
}

/// With the LoRA down-projection of the last weight.
fn with_down(dtype: DType, inner: usize) -> Case {
    let (width, rank) = (64, 8);
    let build = move |g: &mut Graph| {
        let h = g.input("h", Type::f32([1, width]));
        let gate_up = g.weight("gate_up", Type::weight(DType::Q8_0, [2 * inner, width]));
        let x = g.linear_geglu(h, gate_up);
        let down = g.weight("down", Type::weight(dtype, [ROWS, inner]));
        let q = g.weight("q", Type::weight(DType::F32, [2 * rank, inner]));
        let p = g.weight("p", Type::weight(DType::F32, [rank, width]));
        vec![g.linear_with_folded_down(x, down, &FoldedDown { q, h, p })]
    };
    let name = format!("{} after GeGLU to few, with F32 A of rank {rank}", dtype.name());
    let case = Case::new("fused_linear", name, build).tolerance(tolerance(width * inner));
    with_bits(case, "down", dtype, [ROWS, inner])
}

#[cfg(test)]
mod tests {
    use super::{DType, after_geglu, with_down};
    use crate::{
        gpu::{DeviceFacts, Dispatch, GpuCall, Tuning},
        suite::Case,
    };

    #[test]
    fn int8_pairs_are_handed_off_where_both_sides_can() {
        let packed = DeviceFacts {
            packed_dot: true,
            tuning: Tuning { busy_lanes: 64, ..Tuning::default() },
            ..DeviceFacts::floor()
        };
        let unpacked = DeviceFacts { packed_dot: false, ..packed.clone() };
        for (case, facts, handoff) in [
            (after_geglu(DType::Q4_K, [1, 64, 256]), &packed, true),
            (after_geglu(DType::Q6_K, [1, 256, 768]), &packed, true),
            (with_down(DType::Q5_0, 256), &packed, true),
            (after_geglu(DType::Q4_K, [1, 64, 256]), &unpacked, false),
            (after_geglu(DType::F16, [1, 64, 256]), &packed, false),
        ] {
            let dispatches: Vec<Dispatch> = dispatches(&case, facts);
            let has =
                |dispatch: &Dispatch, name| dispatch.parts.iter().any(|part| part.name == name);
            assert_eq!(has(&dispatches[0], "store/int8_pair"), handoff, "{}", case.name);
            assert_eq!(has(&dispatches[1], "prologue/handoff"), handoff, "{}", case.name);
        }
    }

    fn dispatches(case: &Case, facts: &DeviceFacts) -> Vec<Dispatch> {
        let graphs = case.graphs();
        GpuCall::dispatches(facts, &graphs[0]).map(|(_, dispatch)| dispatch).collect()
    }
}
