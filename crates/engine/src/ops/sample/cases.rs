use super::Draw;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    ops::{Paging, Sequences},
    suite::Case,
};

const PLAIN: Draw = Draw { temperature: 1.0, top_p: 1.0, min_p: 0.0, top_k: 0.0 };

pub(crate) fn cases() -> Vec<Case> {
    let low = f32::NEG_INFINITY;
    let mut cases = Vec::new();
    let falling = |k: u16| (0..k).map(|i| 9.0 - f32::from(i) * 0.05).collect::<Vec<_>>();
    let kinds = [
        PLAIN,
        Draw { temperature: 0.0, ..PLAIN },
        Draw { top_p: 0.5, temperature: 2.0, ..PLAIN },
        Draw { min_p: 0.2, temperature: 0.7, ..PLAIN },
        Draw { top_k: 3.0, temperature: 5.0, ..PLAIN },
        Draw { temperature: 1e-30, ..PLAIN },
    ];
    for (number, draw) in (1u32..).zip(kinds) {
        for k in [1, 3, 17, 64, 128] {
            cases.push(sample(&falling(k), draw).seed(number * 7919).step(u32::from(k), 3));
        }
        cases.push(sample(&[2.0, 1.0, low, low], draw).seed(number));
    }
    let seeds = (0..40).map(|seed| sample(&falling(64), PLAIN).seed(seed).step(5, 1));
    cases.extend(seeds);
    cases.push(sample(&[low, low], PLAIN).gives(&[1000.0]));
    cases.push(sample(&[3.0, 2.9], Draw { temperature: 0.0, ..PLAIN }).gives(&[1000.0]));
    cases.push(sample(&[3.0, 2.5, 1.0, 0.0], Draw { top_p: 0.5, ..PLAIN }).gives(&[1000.0]));
    cases.push(into_state());
    cases.push(lists());
    cases.push(rows());
    cases
}

/// The candidates of three tokens.
fn lists() -> Case {
    Case::new("sample", "three lists", |g: &mut Graph| {
        let (ids, logits) =
            (g.input("ids", Type::u32([3, 4])), g.input("logits", Type::f32([3, 4])));
        let draw = g.input("draw", Type::f32([4]));
        vec![g.sample(ids, logits, draw)]
    })
    .given("ids", Data::U32((0..12).collect()))
    .given("logits", Data::F32([2.0, 1.5, 1.0, 0.5].repeat(3)))
    .given("draw", Data::F32(<[f32; 4]>::from(PLAIN).into()))
    .seed(11)
    .step(40, 2)
}

/// Candidates of different sequences, each with its own sampling parameters, seed and position.
fn rows() -> Case {
    let draws = [
        PLAIN,
        Draw { temperature: 0.0, ..PLAIN },
        Draw { top_p: 0.5, temperature: 2.0, ..PLAIN },
        Draw { top_k: 3.0, temperature: 5.0, ..PLAIN },
    ];
    let words = (0..4u32).flat_map(|i| Sequences::words(i * 40 + 3, i * 7919, &[i], 1));
    Case::new("sample", "four sequences", |g: &mut Graph| {
        let (ids, logits) =
            (g.input("ids", Type::u32([4, 5])), g.input("logits", Type::f32([4, 5])));
        let draws = g.input("draws", Type::f32([16]));
        let value = g.input("sequences", Type::u32([4, Sequences::HEADER + 1]));
        let paging = Paging { page: 64, context: 300, one_sequence: false };
        vec![g.sample_rows(ids, logits, draws, Sequences { value, paging })]
    })
    .given("ids", Data::U32((0..20).collect()))
    .given("logits", Data::F32([2.0, 1.5, 1.0, 0.5, 0.25].repeat(4)))
    .given("draws", Data::F32(draws.into_iter().flat_map(<[f32; 4]>::from).collect()))
    .given("sequences", Data::U32(words.collect()))
    .step(1 << 30, 4)
}

fn into_state() -> Case {
    Case::new("sample", "into a state", |g: &mut Graph| {
        let (ids, logits) = (g.input("ids", Type::u32([3])), g.input("logits", Type::f32([3])));
        let (draw, token) = (g.input("draw", Type::f32([4])), g.state("token", Type::u32([1])));
        g.sample_into(token, ids, logits, draw);
        vec![token]
    })
    .given("token", Data::U32(vec![9]))
    .given("ids", Data::U32(vec![5, 6, 7]))
    .given("logits", Data::F32(vec![2.0, 1.0, 0.0]))
    .given("draw", Data::F32(<[f32; 4]>::from(Draw { temperature: 0.0, ..PLAIN }).into()))
    .gives(&[5.0])
}

fn sample(logits: &[f32], draw: Draw) -> Case {
    let k = logits.len();
    let ids = (0..).map(|i| 1000 + i * 3).take(k).collect();
    Case::new("sample", format!("of {k}, {draw:?}"), move |g: &mut Graph| {
        let (ids, logits) = (g.input("ids", Type::u32([k])), g.input("logits", Type::f32([k])));
        let draw = g.input("draw", Type::f32([4]));
        vec![g.sample(ids, logits, draw)]
    })
    .given("ids", Data::U32(ids))
    .given("logits", Data::F32(logits.into()))
    .given("draw", Data::F32(<[f32; 4]>::from(draw).into()))
}
