use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        suppress(1, 1, &[0]),
        suppress(3, 17, &[16, 0, 16, 17, u32::MAX]),
        suppress(2, 600, &[599, 256]),
    ];
    let low = f32::NEG_INFINITY;
    let x = Data::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    cases.push(suppress(2, 3, &[1]).given("x", x).gives(&[1.0, low, 3.0, 4.0, low, 6.0]));
    cases
}

fn suppress(t: usize, v: usize, ids: &[u32]) -> Case {
    let count = ids.len();
    Case::new("suppress", format!("{count} of {t}x{v}"), move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, v]));
        let ids = g.input("ids", Type::u32([count]));
        vec![g.suppress(x, ids)]
    })
    .given("ids", Data::U32(ids.into()))
}
