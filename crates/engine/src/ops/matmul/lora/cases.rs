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
    for (t, widths, rank) in
        [(1, &[1][..], 1), (3, &[17, 5], 2), (5, &[8, 12], 4), (33, &[140, 268, 4], 16)]
    {
        cases.push(columns(t, widths, rank));
    }
    cases.push(columns(3, &[6, 3], 2).gradient());
    cases.push(
        columns(1, &[1, 2], 1)
            .given("base", Data::F32(vec![10.0, 20.0, 30.0]))
            .given("z0", Data::F32(vec![3.0]))
            .given("b0", Data::F32(vec![1.0]))
            .given("z1", Data::F32(vec![-1.0]))
            .given("b1", Data::F32(vec![4.0, 5.0]))
            .gives(&[16.0, 12.0, 20.0]),
    );
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

/// Pairs of a stack of weights, of these numbers of rows.
fn columns(t: usize, widths: &[usize], rank: usize) -> Case {
    let widths = widths.to_vec();
    let name = format!("up-projections {t}x{widths:?} by {rank}");
    Case::new("lora", name, move |g: &mut Graph| {
        let base = g.input("base", Type::f32([t, widths.iter().sum()]));
        let pair = |(i, width): (usize, &usize)| {
            let z = g.input(format!("z{i}"), Type::f32([t, rank]));
            let b = g.input(format!("b{i}"), Type::f32([*width, rank]));
            // The up-projection does not read A.
            (z, Adapter { a: z, b, scale: 2.0 })
        };
        let pairs: Vec<_> = widths.iter().enumerate().map(pair).collect();
        vec![g.lora_up_columns(base, &pairs)]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(rank))
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
