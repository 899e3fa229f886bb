use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [1, 3, 17, 257, 1025, 70_000].map(largest).into();
    let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
    for (logits, id) in [
        (vec![1.0, 3.0, 2.0, 3.0], 1.0),
        (vec![nan, -5.0, nan, -4.0], 3.0),
        (vec![nan, low], 1.0),
        (vec![nan, nan], 0.0),
        (vec![low, low, -3.0e38], 2.0),
        (vec![-1.0, -0.0, 0.0], 1.0),
    ] {
        cases.push(largest(logits.len()).given("logits", Data::F32(logits)).gives(&[id]));
    }
    cases.push(equals());
    cases.push(rows(3, 5));
    cases.push(rows(5, 2500));
    let three = Data::F32(vec![1.0, 3.0, 2.0, 9.0, 1.0, 0.0]);
    cases.push(rows(2, 3).given("logits", three).gives(&[1.0, 0.0]));
    for v in [17, 5000] {
        cases.push(into_state(v).given("token", Data::U32(vec![7])));
    }
    let mut bench = largest(262_144).bench();
    bench.name += " (all of Gemma's)";
    cases.push(bench);
    cases
}

/// Equal largest logits in several workgroups.
fn equals() -> Case {
    let mut logits = vec![0.5; 5000];
    for id in [4999, 4098, 2050, 2049] {
        logits[id] = 7.0;
    }
    largest(logits.len()).given("logits", Data::F32(logits)).gives(&[2049.0])
}

fn rows(t: usize, v: usize) -> Case {
    Case::new("argmax", format!("{t} rows of {v}"), move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([t, v]));
        vec![g.argmax(logits)]
    })
}

fn into_state(v: usize) -> Case {
    Case::new("argmax", format!("{v} into a state"), move |g: &mut Graph| {
        let (token, logits) =
            (g.state("token", Type::u32([1])), g.input("logits", Type::f32([1, v])));
        g.argmax_into(token, logits);
        vec![token]
    })
}

fn largest(v: usize) -> Case {
    Case::new("argmax", format!("{v}"), move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([1, v]));
        vec![g.argmax(logits)]
    })
}
