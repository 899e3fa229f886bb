//! Cases of bidirectional attention, with and without 2-D RoPE.

use rullama_gguf::DType;

use super::score_tolerance;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    ops::Slice,
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, heads, kv_heads, width, count) in [
        (1, 1, 1, 8, 1),
        (3, 2, 1, 16, 3),
        (17, 4, 4, 64, 17),
        (70, 3, 3, 72, 70),
        (70, 2, 2, 72, 33),
        (130, 4, 2, 32, 129),
        // More rows and keys than one tile, for every head width that matrix units support.
        (70, 2, 1, 64, 70),
        (67, 4, 2, 128, 66),
        (65, 2, 2, 256, 65),
        (70, 1, 1, 512, 67),
        // Blocks of rows and tiles of keys of the kernel without matrix units: full ones, one token more, blocks without live tokens.
        (128, 2, 2, 64, 128),
        (129, 2, 1, 64, 129),
        (97, 4, 2, 64, 96),
        (200, 2, 2, 64, 33),
        (64, 1, 1, 64, 1),
        (130, 4, 2, 72, 65),
    ] {
        cases.push(bidirectional([t, heads, width], kv_heads, count));
    }
    // Two tokens with equal scores: the mean of their values.
    let zeros = || Data::F32(vec![0.0; 16]);
    let values = [[2.0; 8], [4.0; 8]].concat();
    let even = bidirectional([2, 1, 8], 1, 2).given("q", zeros()).given("k", zeros());
    cases.push(even.given("v", Data::F32(values)).gives(&[3.0; 16]));
    cases.push(growing(64));
    cases.push(growing(72));
    cases.push(bidirectional([2520, 12, 64], 12, 2520).bench());
    cases.push(bidirectional([2520, 16, 72], 16, 2520).bench());
    for (t, heads, width, count) in
        [(3, 2, 16, 3), (70, 3, 64, 70), (131, 2, 64, 97), (33, 2, 72, 33)]
    {
        cases.push(rope_2d([t, heads, width], count));
    }
    cases.push(rope_2d([2520, 12, 64], 2520).bench());
    cases
}

/// Heads of a fused QKV projection, with norms and 2-D RoPE.
fn rope_2d([t, heads, width]: [usize; 3], count: u32) -> Case {
    let all = heads * width;
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, 3 * all]));
        let [q_norm, k_norm] =
            ["q_norm", "k_norm"].map(|name| g.weight(name, Type::weight(DType::F32, [width])));
        let rope = g.input("rope", Type::f32([t, width / 2, 2]));
        let heads = [0, 1, 2].map(|i| Slice::new(x, i * all, all));
        vec![g.attention_rope_2d(heads, [q_norm, k_norm], rope, 1e-6)]
    };
    let name = format!("{count} of {t}x{heads}x{width}");
    let tolerance = score_tolerance(width, width + t);
    Case::new("attention_rope_2d", name, build).step(0, count).tolerance(tolerance)
}

/// Scores that grow from tile to tile.
fn growing(width: usize) -> Case {
    let t = 200;
    let keys = (0..t).flat_map(|key| vec![key as f32 / t as f32; width]).collect();
    let case = bidirectional([t, 1, width], 1, t as u32);
    let case = case.given("q", Data::F32(vec![0.5; t * width])).given("k", Data::F32(keys));
    // Scores, and so the arguments of exponentials, are up to half the width.
    let tolerance = Tolerance { steps: 128.0, ..Tolerance::EXPONENTIAL.terms(width + t) };
    case.tolerance(tolerance.scores(width as f32 / 2.0))
}

fn bidirectional([t, heads, width]: [usize; 3], kv_heads: usize, count: u32) -> Case {
    let name = format!("{count} of {t}x{heads}x{width} over {kv_heads}");
    Case::new("attention_bidirectional", name, move |g: &mut Graph| {
        let q = g.input("q", Type::f32([t, heads, width]));
        let [k, v] = ["k", "v"].map(|name| g.input(name, Type::f32([t, kv_heads, width])));
        vec![g.attention_bidirectional(q, k, v)]
    })
    .step(0, count)
    .tolerance(score_tolerance(width, width + t))
}
