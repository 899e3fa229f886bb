use super::Adapter;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let shapes = [(1, 1, 1, 1), (3, 17, 5, 2), (2, 257, 33, 8), (1, 1536, 256, 16)];
    let mut cases: Vec<Case> =
        shapes.iter().map(|(t, from, to, r)| adapt(*t, *from, *to, *r)).collect();
    cases.push(adapt(3, 4, 5, 2).gradient());
    cases.push(
        adapt(1, 2, 2, 1)
            .given("base", Data::F32(vec![10.0, 20.0]))
            .given("x", Data::F32(vec![1.0, 2.0]))
            .given("a", Data::F32(vec![3.0, -1.0]))
            .given("b", Data::F32(vec![1.0, -2.0]))
            .gives(&[12.0, 16.0]),
    );
    cases
}

fn adapt(t: usize, from: usize, to: usize, rank: usize) -> Case {
    Case::new("lora", format!("{t}x{from} to {to} by {rank}"), move |g: &mut Graph| {
        let (base, x) = (g.input("base", Type::f32([t, to])), g.input("x", Type::f32([t, from])));
        let a = g.input("a", Type::f32([rank, from]));
        let b = g.input("b", Type::f32([to, rank]));
        vec![g.lora(base, x, &Adapter { a, b, scale: 2.0 })]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(from))
}
