use rullama_gguf::DType;

use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 1, 1, 1), (3, 4, 1, 5), (17, 8, 3, 2), (9, 128, 1, 128), (6, 5, 128, 8)]
            .map(|(rows, columns, channels, outs)| half([rows, columns, channels, outs]))
            .into();
    cases.extend([(1, 1, 5), (3, 17, 5), (9, 257, 3), (4, 6, 1)].map(|(t, c, k)| past(t, c, k)));
    // A kernel that copies the previous row (first axis): rows −1 and 1 of four.
    let back = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let x = Data::F32((0..8).map(|i| i as f32).collect());
    let given =
        |case: Case, x: Data, w: &[f32]| case.given("x", x).given("w", Data::F32(w.to_vec()));
    cases.push(given(half([4, 2, 1, 1]), x, &back).gives(&[0.0, 2.0]));
    // An impulse gives the weights, last one first.
    let x = Data::F32(vec![0.0, 1.0, 0.0, 0.0]);
    cases.push(given(past(4, 1, 3), x, &[3.0, 2.0, 1.0]).gives(&[0.0, 1.0, 2.0, 3.0]));
    cases
}

fn half([rows, columns, channels, outs]: [usize; 4]) -> Case {
    let name = format!("{rows}x{columns}x{channels} to {outs}");
    Case::new("convolve_stride2", name, move |g: &mut Graph| {
        let x = g.input("x", Type::f32([rows, columns * channels]));
        let weight = g.weight("w", Type::weight(DType::F32, [outs * channels * 9]));
        vec![g.convolve_stride2(x, weight, columns)]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(channels * 9))
}

fn past(t: usize, columns: usize, taps: usize) -> Case {
    Case::new("convolve_causal", format!("{t}x{columns} over {taps}"), move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, columns]));
        let weight = g.weight("w", Type::weight(DType::F32, [columns * taps]));
        vec![g.convolve_causal(x, weight)]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(taps))
}
