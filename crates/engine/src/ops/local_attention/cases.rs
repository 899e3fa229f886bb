use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

/// The softcap of audio encoders' scores.
const CAP: f32 = 50.0;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 1, 1, 1), (3, 2, 17, 2), (30, 4, 16, 12), (17, 3, 65, 13), (70, 2, 128, 64)]
            .map(|(n, heads, width, distances)| local([n, heads, width, distances]))
            .into();
    // The second row attends to both keys equally.
    let given = |case: Case, name: &str, x: &[f32]| case.given(name, Data::F32(x.to_vec()));
    let case = given(local([2, 1, 1, 2]), "q", &[1.0, 1.0]);
    let case = given(given(case, "k", &[0.0, 0.0]), "v", &[3.0, 6.0]);
    cases.push(given(case, "r", &[0.5, 0.5]).gives(&[3.0, 4.5]));
    cases.push(local([750, 8, 128, 13]).bench());
    cases
}

fn local([n, heads, width, distances]: [usize; 4]) -> Case {
    let name = format!("{n}x{heads}x{width} over {distances}");
    Case::new("local_attention", name, move |g: &mut Graph| {
        let row = heads * width;
        let qkv = ["q", "k", "v"].map(|name| g.input(name, Type::f32([n, row])));
        let distances = g.input("r", Type::f32([distances, row]));
        vec![g.local_attention(qkv, distances, heads, CAP)]
    })
    .tolerance(tolerance(width + distances))
}

/// A score is the cap times a tanh with an error of about four half-ulps of 1, and an absolute error of a score is a relative error of its
/// weight.
fn tolerance(terms: usize) -> Tolerance {
    let plain = Tolerance::EXPONENTIAL;
    Tolerance { steps: plain.steps + 4.0 * CAP, ..plain }.terms(terms)
}
