use rullama_gguf::DType;

use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, k, d) in [(1, 1, 1), (3, 2, 17), (2, 8, 257), (35_000, 2, 1)] {
        cases.push(combine(t, k, d));
        cases.push(backward(t, k, d));
    }
    cases.push(
        combine(1, 2, 3)
            .given("z", Data::F32(vec![1.0, 2.0, 3.0, 10.0, 20.0, 30.0]))
            .given("w", Data::F32(vec![0.5, -0.1]))
            .gives(&[-0.5, -1.0, -1.5]),
    );
    cases.push(combine(2, 3, 5).gradient());
    for (t, live) in [(1, 1), (3, 3), (40, 33)] {
        cases.push(block(t, live));
    }
    // Far enough apart that a small step does not change the selected experts.
    let logits = [0.3, -0.9, 0.8, 0.1, -0.2, 0.4, -0.6, 0.0, 0.7, -0.1];
    cases.push(block(2, 2).given("logits", Data::F32(logits.into())).gradient());
    cases.push(combine(1, 8, 2816).bench());
    cases.push(combine(512, 8, 2816).bench());
    cases
}

fn combine(t: usize, k: usize, d: usize) -> Case {
    let build = move |g: &mut Graph| {
        let z = g.input("z", Type::f32([t, k, d]));
        let weights = g.input("w", Type::f32([t, k]));
        vec![g.experts_combine(z, weights)]
    };
    Case::new("experts_combine", format!("{t}x{k}x{d}"), build)
        .tolerance(Tolerance::ARITHMETIC.terms(k))
}

fn backward(t: usize, k: usize, d: usize) -> Case {
    let build = move |g: &mut Graph| {
        let z = g.input("z", Type::f32([t, k, d]));
        let weights = g.input("w", Type::f32([t, k]));
        let y = g.experts_combine(z, weights);
        let dy = g.input("dy", Type::f32([t, d]));
        let gradients = crate::graph::backward(g, y, dy, &[z, weights]);
        gradients.into_iter().map(|gradient| gradient.expect("both lead to the sum")).collect()
    };
    Case::new("experts_combine", format!("gradient of {t}x{k}x{d}"), build)
        .tolerance(Tolerance::ARITHMETIC.terms(d))
}

/// A mixture from router logits to the sum, with ids and groups computed on the device: few tokens are gathered, many grouped.
fn block(t: usize, live: u32) -> Case {
    const EXPERTS: usize = 5;
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, 33]));
        let logits = g.input("logits", Type::f32([t, EXPERTS]));
        let scale = g.weight("scale", Type::weight(DType::F32, [EXPERTS]));
        let (ids, weights) = g.router(logits, Some(scale), 2, 1.0);
        let routes = g.routes(ids, EXPERTS);
        let up = g.weight("up", Type::weight(DType::F32, [EXPERTS, 17, 33]));
        let down = g.weight("down", Type::weight(DType::F32, [EXPERTS, 33, 17]));
        let inner = g.linear_experts(x, &routes, up);
        let z = g.linear_experts(inner, &routes, down);
        vec![g.experts_combine(z, weights)]
    };
    Case::new("experts_combine", format!("a block of {t} tokens, {live} live"), build)
        .step(0, live)
        .tolerance(Tolerance::EXPONENTIAL.terms(2 * 33 + 17))
}
