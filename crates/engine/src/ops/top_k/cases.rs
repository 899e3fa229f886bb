use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let shapes =
        [(1, 1), (3, 2), (17, 17), (257, 40), (2049, 128), (2050, 128), (9000, 64), (40_000, 128)];
    let mut cases: Vec<Case> = shapes.iter().map(|(v, k)| largest(*v, *k)).collect();
    let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
    let given = |case: Case, logits: &[f32]| case.given("logits", Data::F32(logits.to_vec()));
    cases.push(given(largest(5, 3), &[1.0, 3.0, 2.0, 3.0, nan]).gives(&[1.0, 3.0, 2.0]));
    cases.push(given(largest(4, 4), &[nan, low, -0.0, 0.0]).gives(&[2.0, 3.0, 1.0, 0.0]));
    cases.push(
        given(largest(5000, 9), &vec![1.5; 5000]).gives(&[0., 1., 2., 3., 4., 5., 6., 7., 8.]),
    );
    cases.push(all_in_one_chunk());
    cases.push(rows(3, 17, 5));
    cases.push(rows(2, 5000, 128));
    for k in [64, 128] {
        cases.push(largest(262_144, k).bench());
    }
    cases
}

/// Ascending logits: all results come from the last chunk.
fn all_in_one_chunk() -> Case {
    let logits: Vec<f32> = (0..8192u16).map(f32::from).collect();
    let best: Vec<f32> = (0..100u16).map(|i| f32::from(8191 - i)).collect();
    largest(8192, 100).given("logits", Data::F32(logits)).gives(&best)
}

fn rows(t: usize, v: usize, k: usize) -> Case {
    Case::new("top_k", format!("{k} of {t}x{v}"), move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([t, v]));
        let (ids, largest) = g.top_k(logits, k);
        vec![ids, largest]
    })
}

fn largest(v: usize, k: usize) -> Case {
    Case::new("top_k", format!("{k} of {v}"), move |g: &mut Graph| {
        let logits = g.input("logits", Type::f32([1, v]));
        let (ids, largest) = g.top_k(logits, k);
        vec![ids, largest]
    })
}
