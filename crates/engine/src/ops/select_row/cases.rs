use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [(1, 1, 1), (5, 17, 3), (4, 257, 4), (3, 600, 0), (3, 5, 9)]
        .map(|(t, d, count)| select(t, d, count))
        .into();
    let x = Data::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    cases.push(select(3, 2, 2).given("x", x).gives(&[3.0, 4.0]));
    for (row, x) in [(0, 1.0), (1, 3.0), (2, 5.0), (9, 5.0)] {
        let case = Case::new("select_row", format!("row {row}"), |g: &mut Graph| {
            let (x, row) = (g.input("x", Type::f32([3, 2])), g.input("row", Type::u32([1])));
            vec![g.select_row_at(x, row)]
        });
        let rows = Data::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let case = case.given("x", rows).given("row", Data::U32(vec![row]));
        cases.push(case.gives(&[x, x + 1.0]));
    }
    cases
}

fn select(t: usize, d: usize, count: u32) -> Case {
    Case::new("select_row", format!("{count} of {t}x{d}"), move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, d]));
        vec![g.select_row(x)]
    })
    .step(7, count)
}
