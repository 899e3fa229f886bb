use rullama_gguf::DType;

use super::Ple;
use crate::{
    graph::{Graph, Type, Value},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let shapes = [(1, 1, 1), (3, 5, 17), (2, 3, 256), (1, 35, 256), (3, 2, 257)];
    let mut cases: Vec<Case> = shapes.iter().map(|(t, l, p)| join(*t, *l, *p)).collect();
    cases.push(join(2, 3, 4).gradient());
    cases
}

fn join(t: usize, l: usize, p: usize) -> Case {
    case(t, l, p, |g, rows, projection, weight| {
        g.ple(Ple { model_width: 96, eps: 1e-6 }, rows, projection, weight)
    })
}

pub(super) fn case(
    t: usize,
    l: usize,
    p: usize,
    build: impl Fn(&mut Graph, Value, Value, Value) -> Value + 'static,
) -> Case {
    let build = move |g: &mut Graph| {
        let rows = g.input("rows", Type::f32([t, l * p]));
        let projection = g.input("projection", Type::f32([t, l * p]));
        let weight = g.weight("w", Type::weight(DType::F32, [p]));
        vec![build(g, rows, projection, weight)]
    };
    Case::new("ple", format!("{t}x{l}x{p}"), build).tolerance(Tolerance::ARITHMETIC.terms(p))
}
