use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 1, 1, 1), (3, 3, 3, 17), (9, 6, 3, 64), (4, 2, 2, 257), (48, 51, 3, 5)]
            .map(|(columns, rows, side, d)| pool([columns, rows, side, d], 1.5))
            .into();
    // Two squares of two columns and two rows.
    let x = Data::F32(vec![1.0, 2.0, 10.0, 20.0, 3.0, 6.0, 30.0, 40.0]);
    cases.push(pool([4, 2, 2, 1], 2.0).given("x", x).gives(&[6.0, 50.0]));
    cases
}

fn pool([columns, rows, side, d]: [usize; 4], scale: f32) -> Case {
    let name = format!("{columns}x{rows}x{d} by {side}");
    Case::new("pool", name, move |g: &mut Graph| {
        let x = g.input("x", Type::f32([columns * rows, d]));
        vec![g.pool(x, columns, side, scale)]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(side * side))
}
