use super::JoinColumns;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let shapes: [(usize, &[usize]); 4] =
        [(1, &[1]), (3, &[17, 5]), (2, &[3, 257, 1]), (5, &[4, 4])];
    let mut cases = Vec::new();
    for (t, widths) in shapes {
        cases.push(split(t, widths));
        cases.push(join(t, widths));
    }
    cases.push(split(3, &[2, 3]).gradient());
    cases.push(join(3, &[2, 3]).gradient());
    let x = Data::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    cases.push(split(2, &[1, 2]).given("x", x).gives(&[1.0, 4.0]));
    cases.push(gap().gives(&[0.0, 7.0, 0.0, 0.0, 8.0, 0.0]));
    cases
}

fn split(t: usize, widths: &[usize]) -> Case {
    let widths = widths.to_vec();
    Case::new("split_columns", format!("{t}x{widths:?}"), move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, widths.iter().sum::<usize>()]));
        g.split_columns(x, &widths)
    })
}

fn join(t: usize, widths: &[usize]) -> Case {
    let widths = widths.to_vec();
    Case::new("join_columns", format!("{t}x{widths:?}"), move |g: &mut Graph| {
        let part = |(i, width): (usize, &usize)| g.input(format!("{i}"), Type::f32([t, *width]));
        let parts: Vec<_> = widths.iter().enumerate().map(part).collect();
        vec![g.join_columns(&parts)]
    })
}

/// Columns that no part covers are zero.
fn gap() -> Case {
    Case::new("join_columns", "with gaps", |g: &mut Graph| {
        let x = g.input("x", Type::f32([2, 1]));
        vec![g.apply(JoinColumns { firsts: vec![1], width: 3 }, &[x])]
    })
    .given("x", Data::F32(vec![7.0, 8.0]))
}
