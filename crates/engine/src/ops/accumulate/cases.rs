use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [1, 17, 257, 600].map(sum).into();
    cases.extend([1, 257].map(clear));
    let given = |case: Case| {
        case.given("state", Data::F32(vec![1.0, 2.0])).given("value", Data::F32(vec![0.5, -4.0]))
    };
    cases.push(given(sum(2)).gives(&[1.5, -2.0]));
    cases.push(given(clear(2)).gives(&[0.0, 0.0]));
    cases
}

fn sum(n: usize) -> Case {
    Case::new("accumulate", format!("{n}"), move |g: &mut Graph| {
        let state = g.state("state", Type::f32([n]));
        let value = g.input("value", Type::f32([n]));
        g.accumulate(state, value);
        vec![state]
    })
}

fn clear(n: usize) -> Case {
    Case::new("clear", format!("{n}"), move |g: &mut Graph| {
        let state = g.state("state", Type::f32([n]));
        g.clear(state);
        vec![state]
    })
}
