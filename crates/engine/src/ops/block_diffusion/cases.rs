use crate::{
    cpu::Data,
    graph::{Graph, Type},
    ops::CanvasTokens,
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 3), (3, 17), (5, 640), (2, 3001)].map(|(n, v)| canvas_softmax(n, v)).into();
    // Probabilities of a half, a quarter and two eighths; the draws fall into the middle of each.
    let z = [0.5f32, 0.25, 0.125, 0.125].map(f32::ln).repeat(4);
    let drawing = canvas_softmax(4, 4).given("z", Data::F32(z));
    let entropy = 1.75 * std::f32::consts::LN_2;
    cases.push(drawing.given("uniform", Data::F32(vec![0.1, 0.6, 0.8, 0.95])).gives(&[entropy; 4]));
    let rising = Data::F32(vec![0.3, 0.1, 0.0, 0.2]);
    // Entropies before each position: 0.3, 0, 0 and 0.1.
    cases.push(canvas_accept(4, 0.1).given("entropy", rising).gives(&[0.15, 4.0, 3.0]));
    cases.push(canvas_accept(300, 2.0));
    cases
}

fn canvas_softmax(n: usize, v: usize) -> Case {
    Case::new("canvas_softmax", format!("{n}x{v}"), move |g: &mut Graph| {
        let (z, uniform) = (g.input("z", Type::f32([n, v])), g.input("uniform", Type::f32([n])));
        let state = g.state("canvas_softmax", Type::f32([n, v]));
        let CanvasTokens { entropy, best, drawn } = g.canvas_softmax(z, uniform, state);
        vec![entropy, best, drawn, state]
    })
    .given("uniform", Data::F32((0..n).map(|i| (i as f32 + 0.37) / n as f32).collect()))
    .tolerance(Tolerance::EXPONENTIAL.terms(v))
}

fn canvas_accept(n: usize, bound: f32) -> Case {
    let ids = |first: usize| Data::U32((first..first + n).map(|id| id as u32).collect());
    let entropy = (0..n).map(|i| (i * 37 % n) as f32 / n as f32 * 0.05 + 0.001).collect();
    Case::new("canvas_accept", format!("{n} positions"), move |g: &mut Graph| {
        let entropy = g.input("entropy", Type::f32([n]));
        let [best, drawn, noise] =
            ["best", "drawn", "noise"].map(|name| g.input(name, Type::u32([n])));
        let bound = g.input("bound", Type::f32([1]));
        let states = (g.state("canvas", Type::u32([n])), g.state("before", Type::u32([n])));
        let statistics =
            g.canvas_accept(&CanvasTokens { entropy, best, drawn }, noise, bound, states);
        vec![statistics, states.0, states.1]
    })
    .given("entropy", Data::F32(entropy))
    .given("bound", Data::F32(vec![bound]))
    .given("best", ids(0))
    .given("drawn", ids(1000))
    .given("noise", ids(2000))
    .given("canvas", ids(0))
    .given("before", ids(5))
    .tolerance(Tolerance::ARITHMETIC.terms(n))
}
