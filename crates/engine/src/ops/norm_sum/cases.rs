use rullama_gguf::DType;

use crate::{
    cpu::{Data, Weight},
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 1), (3, 17), (2, 257), (5, 1536)].map(|(t, d)| sum(t, d)).into();
    cases.push(sum(3, 5).gradient());
    let weight = || {
        let bytes: Vec<u8> = [1.0f32, 1.0, -2.0].iter().flat_map(|n| n.to_le_bytes()).collect();
        Data::Weight(Weight::new(DType::F32, [3], bytes))
    };
    let literal = sum(1, 3)
        .given("a", Data::F32(vec![1.0, 2.0, 2.0]))
        .given("b", Data::F32(vec![0.0, 3.0, 0.0]))
        .given("wa", weight())
        .given("wb", weight());
    cases.push(literal.gives(&[0.577_350_1, 2.886_751, -2.309_400_6]));
    cases.push(sum(1, 2816).bench());
    cases
}

fn sum(t: usize, d: usize) -> Case {
    let build = move |g: &mut Graph| {
        let (a, b) = (g.input("a", Type::f32([t, d])), g.input("b", Type::f32([t, d])));
        let wa = g.weight("wa", Type::weight(DType::F32, [d]));
        let wb = g.weight("wb", Type::weight(DType::F32, [d]));
        vec![g.norm_sum((a, wa), (b, wb), 1e-6)]
    };
    Case::new("norm_sum", format!("{t}x{d}"), build).tolerance(Tolerance::ARITHMETIC.terms(d))
}
