use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let shapes = [(1, 1), (3, 17), (2, 257), (1, 65_536 * 256 + 1)];
    let mut cases: Vec<Case> = shapes.iter().map(|(t, d)| sum(*t, *d)).collect();
    cases.push(
        sum(1, 3)
            .given("a", Data::F32(vec![1.0, 2.0, 3.0]))
            .given("b", Data::F32(vec![0.5, -2.0, 1.0]))
            .gives(&[1.5, 0.0, 4.0]),
    );
    cases.push(sum(2, 3).gradient());
    cases
}

fn sum(t: usize, d: usize) -> Case {
    Case::new("add", format!("{t}x{d}"), move |g: &mut Graph| {
        let (a, b) = (g.input("a", Type::f32([t, d])), g.input("b", Type::f32([t, d])));
        vec![g.add(a, b)]
    })
}
