use rullama_gguf::DType;

use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, experts, chosen) in [(1, 1, 1), (3, 17, 3), (2, 256, 16), (5, 128, 8)] {
        cases.push(route(t, experts, chosen));
        cases.push(backward(t, experts, chosen));
    }
    cases.push(route(66_000, 3, 2));
    // Equal logits in the order of their ids, zeros of both signs among them.
    cases.push(given(3, &[0.0, 5.0, -0.0, 5.0, 5.0]).gives(&THIRDS));
    cases.push(given(4, &[-0.0, -1.0, 0.0, 1.0, f32::NEG_INFINITY]));
    // NaN and infinities give valid ids and finite weights.
    let nan = f32::NAN;
    cases.push(given(3, &[nan, 1.0, nan, f32::NEG_INFINITY, -nan]).gives(&[2.0, 0.0, 0.0]));
    cases.push(given(5, &[nan, nan, nan, nan, nan]));
    cases.push(given(2, &[1.0, f32::INFINITY, nan, f32::INFINITY, 3.0]).gives(&[1.0, 1.0]));
    let distinct = [0.3, -0.9, 0.8, 0.1, -0.2, 0.4, -0.6, 0.0, 0.7, -0.1];
    cases.push(route(2, 5, 2).given("logits", Data::F32(distinct.into())).gradient());
    cases.push(route(2, 96, 4));
    cases.push(unscaled(1, &[0.0, 5.0, -0.0, 5.0, 5.0]).gives(&[1.0]));
    cases.push(unscaled(3, &[0.0, 5.0, -0.0, 5.0, 5.0]).gives(&[1.0 / 3.0; 3]));
    cases.push(unscaled(2, &[0.3, -0.9, 0.8, 0.1, -0.2]).gradient());
    cases.push(route(1, 128, 8).bench());
    cases.push(route(512, 128, 8).bench());
    cases
}

const THIRDS: [f32; 3] = [2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0];

fn route(t: usize, experts: usize, chosen: usize) -> Case {
    let build = move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([t, experts]));
        let scale = g.weight("scale", Type::weight(DType::F32, [experts]));
        let (ids, weights) = g.router(logits, Some(scale), chosen, 0.5);
        vec![weights, ids]
    };
    Case::new("router", format!("{chosen} of {t}x{experts}"), build)
        .tolerance(Tolerance::EXPONENTIAL)
}

/// One token's logits; the scale of each expert is 2.
fn given(chosen: usize, logits: &[f32; 5]) -> Case {
    let build = move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([1, 5]));
        let scale = g.input("scale", Type::f32([5]));
        let (ids, weights) = g.router(logits, Some(scale), chosen, 1.0);
        vec![weights, ids]
    };
    Case::new("router", format!("{chosen} of {logits:?}"), build)
        .given("logits", Data::F32(logits.to_vec()))
        .given("scale", Data::F32(vec![2.0; 5]))
        .tolerance(Tolerance::EXPONENTIAL)
}

/// One token's logits without expert scales.
fn unscaled(chosen: usize, logits: &[f32; 5]) -> Case {
    let build = move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([1, 5]));
        let (ids, weights) = g.router(logits, None, chosen, 1.0);
        vec![weights, ids]
    };
    Case::new("router", format!("{chosen} of {logits:?} without scales"), build)
        .given("logits", Data::F32(logits.to_vec()))
        .tolerance(Tolerance::EXPONENTIAL)
}

fn backward(t: usize, experts: usize, chosen: usize) -> Case {
    let build = move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([t, experts]));
        let scale = g.weight("scale", Type::weight(DType::F32, [experts]));
        let (_, weights) = g.router(logits, Some(scale), chosen, 0.5);
        let dw = g.input("dw", Type::f32([t, chosen]));
        vec![
            crate::graph::backward(g, weights, dw, &[logits])[0].expect("weights depend on logits"),
        ]
    };
    // A difference of nearly equal products has their rounding error.
    Case::new("router", format!("gradient of {chosen} of {t}x{experts}"), build)
        .tolerance(Tolerance::EXPONENTIAL.terms(chosen).cancelling(0.5))
}
