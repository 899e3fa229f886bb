use rullama_gguf::DType;

use super::RmsNormGrad;
use crate::{
    graph::{Graph, Type, Value},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, d, width) in [(1, 1, 1), (3, 17, 17), (2, 257, 257), (3, 64, 16), (5, 1536, 1536)] {
        cases.push(gradient(t, d, width, false));
        cases.push(gradient(t, d, width, true));
        cases.push(based(t, d, width));
    }
    cases
}

fn based(t: usize, d: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let [x, dy, base] = ["x", "dy", "base"].map(|name| g.input(name, Type::f32([t, d])));
        let weight = g.weight("w", Type::weight(DType::F32, [width]));
        vec![g.apply(RmsNormGrad { width, eps: 1e-6 }, &[x, dy, weight, base])]
    };
    case(format!("{t}x{d} by {width} on a base"), width, build)
}

fn gradient(t: usize, d: usize, width: usize, weighted: bool) -> Case {
    let name = format!("{t}x{d} by {width}{}", if weighted { " weighted" } else { "" });
    let build = move |g: &mut Graph| {
        let (x, dy) = (g.input("x", Type::f32([t, d])), g.input("dy", Type::f32([t, d])));
        let weight = weighted.then(|| g.weight("w", Type::weight(DType::F32, [width])));
        vec![g.rms_norm_grad(RmsNormGrad { width, eps: 1e-6 }, x, dy, weight)]
    };
    case(name, width, build)
}

fn case(name: String, width: usize, build: impl Fn(&mut Graph) -> Vec<Value> + 'static) -> Case {
    // In a norm over one element the two terms cancel.
    let steps = if width == 1 { 1e7 } else { 32.0 };
    Case::new("rms_norm_grad", name, build)
        .tolerance(Tolerance { steps, ..Tolerance::ARITHMETIC.terms(width) })
}
