//! Quantised hand-off: GeGLU writes its output as digits, with many rows before it and few after.

use rullama_gguf::DType;

use super::{EPS, apart::apart, tolerance};
use crate::{
    graph::{Graph, Type},
    ops::{Ahead, Finish, Start},
    suite::{Case, random_bits},
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
    let mut cases: Vec<Case> = packed.map(|dtype| behind_gates(dtype, [1, 64, 256])).into();
    for dtype in [DType::Q4_K, DType::Q6_K, DType::Q5_0] {
        // Workgroups that make more than one half at a time, and some past the last one; several turns; tokens apart.
        cases.push(behind_gates(dtype, [1, 256, 768]));
        cases.push(apart(behind_gates(dtype, [3, 64, 256]), 3));
        cases.push(apart(behind_gates(dtype, [5, 256, 768]), 5));
        cases.push(beside(dtype, 256));
    }
    cases
}

/// After a norm, gates and up, and back to few rows.
fn behind_gates(dtype: DType, [t, width, inner]: [usize; 3]) -> Case {
    let build = move |g: &mut Graph| {
        let h = g.input("h", Type::f32([t, width]));
        let weight = g.weight("next", Type::weight(DType::F32, [width]));
        let gate_up = g.weight("gate_up", Type::weight(DType::Q8_0, [2 * inner, width]));
        let start = Start::Norm { h, weight, eps: EPS };
        let x = g.product(&start, gate_up, &Finish::Geglu).1;
        let down = g.weight("down", Type::weight(dtype, [ROWS, inner]));
        vec![g.linear(x, down)]
    };
    let name = format!("{t} x {} behind gates, {width} to {inner} to few", dtype.name());
    with_bits(Case::new("product", name, build).tolerance(tolerance(width * inner)), dtype, inner)
}

/// The same with factors of an adapter beside the way back.
fn beside(dtype: DType, inner: usize) -> Case {
    let (width, rank) = (64, 8);
    let build = move |g: &mut Graph| {
        let h = g.input("h", Type::f32([1, width]));
        let gate_up = g.weight("gate_up", Type::weight(DType::Q8_0, [2 * inner, width]));
        let x = g.linear_geglu(h, gate_up);
        let down = g.weight("down", Type::weight(dtype, [ROWS, inner]));
        let q = g.weight("q", Type::weight(DType::F32, [2 * rank, inner]));
        let p = g.weight("p", Type::weight(DType::F32, [rank, width]));
        vec![g.product_ahead(x, down, &Ahead { q, h, p })]
    };
    let name = format!("{} behind gates to few, beside F32 of rank {rank}", dtype.name());
    with_bits(Case::new("product", name, build).tolerance(tolerance(width * inner)), dtype, inner)
}

fn with_bits(case: Case, dtype: DType, inner: usize) -> Case {
    match dtype.block_elements() > 32 {
        true => case.given("down", random_bits(dtype, [ROWS, inner])),
        false => case,
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, behind_gates, beside};
    use crate::{
        gpu::{DeviceFacts, Dispatch, GpuCall},
        suite::Case,
    };

    #[test]
    fn digits_are_handed_off_where_both_know_them() {
        let known = DeviceFacts { packed_dot: true, busy_lanes: 64, ..DeviceFacts::floor() };
        let unknown = DeviceFacts { packed_dot: false, ..known.clone() };
        for (case, facts, handoff) in [
            (behind_gates(DType::Q4_K, [1, 64, 256]), &known, true),
            (behind_gates(DType::Q6_K, [1, 256, 768]), &known, true),
            (beside(DType::Q5_0, 256), &known, true),
            (behind_gates(DType::Q4_K, [1, 64, 256]), &unknown, false),
            (behind_gates(DType::F16, [1, 64, 256]), &known, false),
        ] {
            let made: Vec<Dispatch> = dispatches(&case, facts);
            let has =
                |dispatch: &Dispatch, name| dispatch.parts.iter().any(|part| part.name == name);
            assert_eq!(has(&made[0], "given/digits"), handoff, "{}", case.name);
            assert_eq!(has(&made[1], "begin/handoff"), handoff, "{}", case.name);
        }
    }

    fn dispatches(case: &Case, facts: &DeviceFacts) -> Vec<Dispatch> {
        let graphs = case.graphs();
        GpuCall::dispatches(facts, &graphs[0]).map(|(_, dispatch)| dispatch).collect()
    }
}
