//! Many rows between linear layers: on devices with matrix units, producers store them as f16 columns.

use rullama_gguf::DType;

use super::{EPS, handoff::after_geglu, tolerance, with_bits};
use crate::{
    graph::{Graph, Type},
    ops::{Branch, Epilogue, Prologue},
    suite::Case,
};

const ROWS: usize = 24;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Every order of units; Q3_K, which has none that producers know.
    for dtype in
        [DType::F32, DType::F16, DType::BF16, DType::Q5_0, DType::Q4_K, DType::Q6_K, DType::Q3_K]
    {
        cases.push(after_geglu(dtype, [9, 64, 256]));
        cases.push(after_residual_add(dtype, [17, 256]));
    }
    // An odd number of units; widths beyond the lanes of a workgroup; several tiles of columns.
    cases.push(after_geglu(DType::Q8_0, [16, 64, 96]));
    cases.push(after_geglu(DType::Q4_K, [33, 32, 1280]));
    cases.push(after_slice(DType::Q8_0, [16, 96]));
    cases.push(after_slice(DType::Q4_K, [32, 256]));
    cases
}

/// A residual add whose sum and norm are both results: only the norm is stored as columns.
fn after_residual_add(dtype: DType, [t, width]: [usize; 2]) -> Case {
    let build = move |g: &mut Graph| {
        let branch = Branch {
            residual: g.input("h", Type::f32([t, width])),
            branch: g.input("a", Type::f32([t, width])),
            weight: g.weight("post", Type::weight(DType::F32, [width])),
            post_norm: true,
            scale: None,
            lora_b: None,
            folded: 0,
        };
        let next = Some(g.weight("next", Type::weight(DType::F32, [width])));
        let weight = g.weight("w", Type::weight(dtype, [ROWS, width]));
        let prologue = Prologue::ResidualAdd { branch, next, eps: EPS };
        let (h1, y) = g.fused_linear(&prologue, weight, &Epilogue::Plain);
        h1.into_iter().chain([y]).collect()
    };
    let name = format!("{t} x {} after a residual add of {width}", dtype.name());
    let case = Case::new("fused_linear", name, build).tolerance(tolerance(width));
    with_bits(case, "w", dtype, [ROWS, width])
}

/// A gate with a slice of per-layer inputs.
fn after_slice(dtype: DType, [t, width]: [usize; 2]) -> Case {
    let build = move |g: &mut Graph| {
        let u = g.input("u", Type::f32([t, width]));
        let long = g.input("long", Type::f32([t, 3 * width]));
        let x = g.gelu_mul_slice(u, long, 1);
        let weight = g.weight("w", Type::weight(dtype, [ROWS, width]));
        vec![g.linear(x, weight)]
    };
    let name = format!("{t} x {} after a gated slice of {width}", dtype.name());
    let case = Case::new("fused_linear", name, build).tolerance(tolerance(width));
    with_bits(case, "w", dtype, [ROWS, width])
}

#[cfg(test)]
mod tests {
    use super::{DType, after_geglu, after_residual_add, after_slice};
    use crate::{
        gpu::{DeviceFacts, GpuCall, MatrixUnits},
        suite::Case,
    };

    /// Dispatches that only convert activations.
    fn conversions(case: &Case, facts: &DeviceFacts) -> usize {
        GpuCall::dispatches(facts, &case.graphs()[0])
            .filter(|(_, dispatch)| dispatch.kernel.name == "matmul/prepare")
            .count()
    }

    #[test]
    fn producers_store_the_columns_of_matrix_units() {
        let matrix = DeviceFacts {
            f16: true,
            subgroups: Some((32, 32)),
            matrix: Some(MatrixUnits::Wgpu16),
            workgroup_bytes: 48 << 10,
            ..DeviceFacts::floor()
        };
        for (case, converted) in [
            (after_geglu(DType::Q4_K, [9, 64, 256]), 0),
            (after_geglu(DType::Q6_K, [33, 64, 256]), 0),
            (after_residual_add(DType::Q4_K, [17, 256]), 0),
            (after_slice(DType::Q8_0, [16, 96]), 0),
            // The order of its units is unknown to producers.
            (after_residual_add(DType::Q3_K, [17, 256]), 1),
        ] {
            assert_eq!(conversions(&case, &matrix), converted, "{}", case.name);
            assert_eq!(conversions(&case, &DeviceFacts::floor()), 0, "{}", case.name);
        }
    }
}
