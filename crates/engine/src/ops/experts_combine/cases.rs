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
