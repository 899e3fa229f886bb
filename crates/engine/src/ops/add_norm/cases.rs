use rullama_gguf::DType;

use super::Branch;
use crate::{
    graph::{Graph, Type, Value},
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, d) in [(1, 1), (3, 17), (2, 257), (5, 1536)] {
        for scaled in [false, true] {
            cases.push(one(t, d, scaled));
            cases.push(two(t, d, scaled));
        }
    }
    for scaled in [false, true] {
        cases.push(one(3, 5, scaled).gradient());
        cases.push(two(3, 5, scaled).gradient());
        cases.push(second_of_two(2, 7, scaled).gradient());
    }
    cases
}

fn one(t: usize, d: usize, scaled: bool) -> Case {
    case("add_norm", t, d, scaled, |g, branch, _| vec![g.add_norm(branch, EPS)])
}

fn two(t: usize, d: usize, scaled: bool) -> Case {
    case("add_norm_norm", t, d, scaled, |g, branch, next| {
        let (h1, x) = g.add_norm_norm(branch, next, EPS);
        vec![h1, x]
    })
}

/// A product of both results, so that the gradient of the second is checked.
fn second_of_two(t: usize, d: usize, scaled: bool) -> Case {
    case("add_norm_norm", t, d, scaled, |g, branch, next| {
        let (h1, x) = g.add_norm_norm(branch, next, EPS);
        vec![g.mul(h1, x)]
    })
}

pub(super) fn case(
    op: &'static str,
    t: usize,
    d: usize,
    scaled: bool,
    build: impl Fn(&mut Graph, &Branch, Value) -> Vec<Value> + 'static,
) -> Case {
    let name = format!("{t}x{d}{}", if scaled { " scaled" } else { "" });
    let build = move |g: &mut Graph| {
        let branch = Branch {
            residual: g.input("h", Type::f32([t, d])),
            branch: g.input("a", Type::f32([t, d])),
            weight: g.weight("w", Type::weight(DType::F32, [d])),
            post_norm: true,
            scale: scaled.then(|| g.weight("s", Type::weight(DType::F32, [1]))),
            lora_b: None,
            folded: 0,
        };
        let next = g.weight("w2", Type::weight(DType::F32, [d]));
        build(g, &branch, next)
    };
    let steps = Tolerance { steps: 16.0, ..Tolerance::ARITHMETIC };
    Case::new(op, name, build).tolerance(steps.terms(d))
}
