use super::ScatterRows;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

const NONE: u32 = u32::MAX;

pub(crate) fn cases() -> Vec<Case> {
    let shapes: [(usize, usize, &[u32]); 3] =
        [(1, 1, &[0]), (5, 17, &[4, NONE, 2, 2]), (3, 257, &[0, 2])];
    let mut cases = Vec::new();
    for (t, d, rows) in shapes {
        cases.push(gather(t, d, rows));
        cases.push(scatter(t, d, rows));
    }
    cases.push(gather(4, 3, &[3, NONE, 0, 3]).gradient());
    let x = Data::F32(vec![1.0, 2.0, 3.0, 4.0]);
    cases.push(gather(2, 2, &[1, NONE]).given("x", x.clone()).gives(&[3.0, 4.0, 0.0, 0.0]));
    cases.push(scatter(2, 2, &[1, 1]).given("x", x).gives(&[0.0, 0.0, 4.0, 6.0]));
    cases
}

fn gather(t: usize, d: usize, rows: &[u32]) -> Case {
    let n = rows.len();
    Case::new("gather_rows", format!("{n} of {t}x{d}"), move |g: &mut Graph| {
        let (x, rows) = (g.input("x", Type::f32([t, d])), g.input("rows", Type::u32([n])));
        vec![g.gather_rows(x, rows)]
    })
    .given("rows", Data::U32(rows.into()))
}

fn scatter(t: usize, d: usize, rows: &[u32]) -> Case {
    let n = rows.len();
    Case::new("scatter_rows", format!("{n} into {t}x{d}"), move |g: &mut Graph| {
        let (x, rows) = (g.input("x", Type::f32([n, d])), g.input("rows", Type::u32([n])));
        vec![g.apply(ScatterRows { rows: t }, &[x, rows])]
    })
    .given("rows", Data::U32(rows.into()))
}
