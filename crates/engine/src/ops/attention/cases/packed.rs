//! Cases of packed sequences.

use super::score_tolerance;
use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Three texts in one pass, and a bidirectional window.
    let lengths = [5u32, 40, 33];
    let mut texts = Vec::new();
    for length in lengths {
        let first = texts.len() as u32 / 2;
        for i in 0..length {
            texts.extend([first + i.saturating_sub(6), first + (i + 7).min(length)]);
        }
    }
    cases.push(packed([78, 4, 32], (78, 2), (0, 78), texts.clone()));
    cases.push(packed([78, 2, 16], (78, 1), (0, 70), texts));
    // A canvas after a prompt, in a ring buffer.
    cases.push(packed([24, 4, 32], (48, 1), (60, 24), [45u32, 84].repeat(24)));
    let even = packed([2, 1, 8], (2, 1), (0, 2), vec![0, 2, 0, 2]);
    let zeros = || Data::F32(vec![0.0; 16]);
    let values = [[2.0; 8], [4.0; 8]].concat();
    cases.push(
        even.given("q", zeros())
            .given("k", zeros())
            .given("v", Data::F32(values))
            .gives(&[3.0; 16]),
    );
    cases
}

fn packed(
    [t, heads, width]: [usize; 3],
    (slots, kv_heads): (usize, usize),
    (position, count): (u32, u32),
    ranges: Vec<u32>,
) -> Case {
    let name = format!("{count} of {t}x{heads}x{width} over {slots}x{kv_heads}");
    Case::new("attention_packed", name, move |g: &mut Graph| {
        let q = g.input("q", Type::f32([t, heads, width]));
        let k = g.state("k", Type::cache(Element::F32, [slots, kv_heads, width]));
        let v = g.input("v", Type::f32([slots, kv_heads * width]));
        let ranges = g.input("ranges", Type::u32([t, 2]));
        vec![g.attention_packed(q, k, v, ranges)]
    })
    .given("ranges", Data::U32(ranges))
    .step(position, count)
    .tolerance(score_tolerance(width, width + slots))
}
