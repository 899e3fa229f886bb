use rullama_gguf::DType;

use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, d) in [(1, 1), (3, 17), (2, 257), (5, 1536)] {
        cases.push(norm(t, d, false));
        cases.push(norm(t, d, true));
    }
    cases.push(norm(3, 5, false).gradient());
    cases.push(norm(2, 7, true).gradient());
    let x = Data::F32(vec![1.0, 2.0, 2.0]);
    cases.push(norm(1, 3, false).given("x", x).gives(&[0.577_350_1, 1.154_700_3, 1.154_700_3]));
    cases
}

fn norm(t: usize, d: usize, weighted: bool) -> Case {
    let name = format!("{t}x{d}{}", if weighted { " weighted" } else { "" });
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, d]));
        let weight = weighted.then(|| g.weight("w", Type::weight(DType::F32, [d])));
        vec![g.rms_norm(x, weight, 1e-6)]
    };
    Case::new("rms_norm", name, build).tolerance(Tolerance::ARITHMETIC.terms(d))
}
