use super::{AdamWStep, Trained};
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

const STEP: AdamWStep = AdamWStep {
    rate: 0.1,
    beta1: 0.9,
    beta2: 0.999,
    eps: 1e-8,
    decay: 0.01,
    gradient_scale: 1.0,
    step: 1,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [1, 17, 257, 600].map(|n| update(n, STEP)).into();
    cases.push(update(33, AdamWStep { step: 1000, gradient_scale: 0.25, ..STEP }));
    // The size of the first step is the learning rate, whatever the gradient.
    let zero_moments =
        |case: Case| case.given("m", Data::F32(vec![0.0; 2])).given("v", Data::F32(vec![0.0; 2]));
    let case = zero_moments(update(2, AdamWStep { decay: 0.0, ..STEP }))
        .given("theta", Data::F32(vec![1.0, -1.0]))
        .given("g", Data::F32(vec![0.5, -20.0]));
    cases.push(case.gives(&[0.9, -0.9]));
    cases
}

fn update(n: usize, step: AdamWStep) -> Case {
    let squares = (0..n).map(|i| 0.1 + (i % 7) as f32).collect();
    Case::new("adamw", format!("{n}, step {}", step.step), move |g: &mut Graph| {
        let ty = Type::f32([n]);
        let trained = Trained {
            parameters: g.state("theta", ty.clone()),
            first: g.state("m", ty.clone()),
            second: g.state("v", ty.clone()),
            gradient: g.input("g", ty),
        };
        let settings = g.input("settings", Type::f32([AdamWStep::LEN]));
        g.adamw(&trained, settings);
        vec![trained.parameters, trained.first, trained.second]
    })
    .given("v", Data::F32(squares))
    .given("settings", Data::F32(step.values().into()))
    .tolerance(Tolerance { steps: 32.0, ..Tolerance::ARITHMETIC })
}
