use rullama_gguf::DType;

use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for biased in [false, true] {
        for (t, n) in [(1, 1), (3, 17), (2, 257), (5, 6912)] {
            cases.push(norm(t, n, biased));
        }
        cases.push(norm(70_000, 3, biased).given("x", spread(70_000)));
    }
    cases.push(groups(7, 5, 16));
    // Mean 3, variance 4; eps is negligible.
    let row = |name: &str, case: Case, x: &[f32]| case.given(name, Data::F32(x.to_vec()));
    let case = row("x", norm(1, 2, true), &[1.0, 5.0]);
    let case = row("b", row("w", case, &[2.0, 3.0]), &[10.0, 20.0]);
    cases.push(case.gives(&[8.0, 23.0]));
    cases
}

/// Rows of three values far enough spread: of 70,000 random rows, some have values so close that the rounding of their mean is amplified a
/// hundredfold.
fn spread(rows: usize) -> Data {
    let row = |row: usize| {
        let (shift, rotation) = ((row % 89) as f32 / 89.0, row % 3);
        [0, 1, 2].map(|i| ((i + rotation) % 3) as f32 - shift)
    };
    Data::F32((0..rows).flat_map(row).collect())
}

/// Several groups per row, each normalised separately.
fn groups(t: usize, groups: usize, n: usize) -> Case {
    Case::new("layer_norm", format!("{t}x{groups}x{n}"), move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, groups * n]));
        let weight = g.weight("w", Type::weight(DType::F32, [n]));
        vec![g.layer_norm(x, weight, None, 1e-6)]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(n))
}

fn norm(t: usize, n: usize, biased: bool) -> Case {
    let name = format!("{t}x{n}{}", if biased { " with bias" } else { "" });
    Case::new("layer_norm", name, move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, n]));
        let mut row = |name: &str| g.weight(name, Type::weight(DType::F32, [n]));
        let (weight, bias) = (row("w"), biased.then(|| row("b")));
        vec![g.layer_norm(x, weight, bias, 1e-6)]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(n))
}
