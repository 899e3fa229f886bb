use super::{CrossEntropyGrad, MASKED};
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let rows: [(usize, u32, &[u32]); 4] = [
        (1, 1, &[0]),
        (17, 3, &[16, MASKED, 2]),
        (257, 4, &[256, 0, MASKED, 9, 11]),
        (1000, 2, &[MASKED, 1000]),
    ];
    let mut cases = Vec::new();
    for (v, count, targets) in rows {
        cases.push(loss(v, count, targets));
        cases.push(gradient(v, count, targets));
    }
    cases.push(loss(5, 3, &[4, MASKED, 0, 1]).gradient());
    // -ln(e / (e + 2)); the other rows contribute nothing.
    let logits = Data::F32(vec![0.0, 1.0, 0.0, 9.0, 9.0, 9.0, 7.0, 7.0, 8.0]);
    cases.push(loss(3, 2, &[1, MASKED, 0]).given("logits", logits).gives(&[0.551_444_7]));
    cases
}

fn loss(v: usize, count: u32, targets: &[u32]) -> Case {
    let t = targets.len();
    Case::new("cross_entropy", format!("{t}x{v}"), move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([t, v]));
        let targets = g.input("targets", Type::u32([t]));
        vec![g.cross_entropy(logits, targets)]
    })
    .given("targets", Data::U32(targets.into()))
    .step(0, count)
    .tolerance(Tolerance::EXPONENTIAL.terms(v))
}

fn gradient(v: usize, count: u32, targets: &[u32]) -> Case {
    let t = targets.len();
    Case::new("cross_entropy_grad", format!("{t}x{v}"), move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([t, v]));
        let targets = g.input("targets", Type::u32([t]));
        let dloss = g.input("dloss", Type::f32([1]));
        vec![g.apply(CrossEntropyGrad, &[logits, targets, dloss])]
    })
    .given("targets", Data::U32(targets.into()))
    .step(0, count)
    .tolerance(Tolerance::EXPONENTIAL.terms(v))
}
