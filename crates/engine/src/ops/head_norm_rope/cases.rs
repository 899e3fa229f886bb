//! Cases of head norms, RoPE and KV cache writes.

use rullama_gguf::DType;

use super::{HeadForm, HeadNormRopeGrad, KvStoreInputs, RopePairs, rope_table};
use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    ops::Slice,
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;

/// No norms, adjacent RoPE pairs.
const LLAMA: HeadForm =
    HeadForm { eps: EPS, qk_norm: false, v_norm: false, pairs: RopePairs::Adjacent };
/// Norms of queries and keys only.
const GEMMA3: HeadForm =
    HeadForm { eps: EPS, qk_norm: true, v_norm: false, pairs: RopePairs::Halves };

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, heads, width) in [(1, 1, 4), (3, 5, 16), (17, 3, 48), (2, 8, 256), (1, 4, 512)] {
        cases.push(rotated(t, heads, width));
        cases.push(rope_2d(t, heads, width));
        cases.push(norm_only(t, heads, width));
        cases.push(back(t, heads, width, EPS.into()));
    }
    for (t, heads, width) in [(1, 1, 4), (3, 5, 16), (2, 9, 64)] {
        for form in [LLAMA, GEMMA3] {
            cases.push(formed(t, heads, width, form));
            cases.push(back(t, heads, width, form));
        }
    }
    let x = Data::F32(vec![1.0, 2.0, 2.0, 4.0]);
    cases.push(norm_only(1, 1, 4).given("x", x).gives(&[0.4, 0.8, 0.8, 1.6]));
    cases.push(sliced(false));
    cases.push(sliced(true));
    cases.push(rotated(3, 2, 8).gradient());
    cases.push(norm_only(3, 2, 8).gradient());
    cases.push(formed(3, 2, 8, LLAMA).gradient());
    for element in [Element::F32, Element::F16, Element::Q8] {
        cases.extend(caches(element));
    }
    cases
}

fn rotated(t: usize, heads: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, heads * width]));
        let weight = g.weight("w", Type::weight(DType::F32, [width]));
        // The table has no gradient; as a state, none is requested.
        let rope = g.state("rope", Type::f32([t, width / 2, 2]));
        vec![g.head_norm_rope(x, weight, rope, EPS)]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width} rotated"), build)
        .given("rope", table(1000, t, width))
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

/// Another form than Gemma 4's: queries, and values.
fn formed(t: usize, heads: usize, width: usize, form: HeadForm) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, heads * width]));
        let rope = g.state("rope", Type::f32([t, width / 2, 2]));
        let weight = match form.qk_norm {
            true => g.weight("w", Type::weight(DType::F32, [width])),
            false => rope,
        };
        vec![g.head_norm_rope(x, weight, rope, form), g.head_norm(x, width, form)]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width} {}", name(form)), build)
        .given("rope", table(1000, t, width))
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

fn name(form: HeadForm) -> String {
    let HeadForm { qk_norm, v_norm, pairs, .. } = form;
    format!("norms {qk_norm} {v_norm}, {pairs:?}")
}

/// Positions with two axes: 2-D RoPE.
fn rope_2d(t: usize, heads: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, heads * width]));
        let weight = g.weight("w", Type::weight(DType::F32, [width]));
        let rope = g.input("rope", Type::f32([t, width / 2, 2]));
        vec![g.head_norm_rope_2d(x, weight, rope, EPS)]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width} 2-D RoPE"), build)
        .given("rope", table(1000, t, width))
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

fn norm_only(t: usize, heads: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, heads * width]));
        vec![g.head_norm(x, width, EPS)]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width}"), build)
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

/// The gradient's kernel; the cases with `.gradient()` check its result.
fn back(t: usize, heads: usize, width: usize, form: HeadForm) -> Case {
    let build = move |g: &mut Graph| {
        let (x, dy) = (
            g.input("x", Type::f32([t, heads * width])),
            g.input("dy", Type::f32([t, heads, width])),
        );
        let weight = g.weight("w", Type::weight(DType::F32, [width]));
        let rope = g.input("rope", Type::f32([t, width / 2, 2]));
        let op = HeadNormRopeGrad { width, form };
        vec![g.apply(op.clone(), &[x, dy, weight, rope]), g.apply(op, &[x, dy])]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width} back, {}", name(form)), build)
        .given("rope", table(1000, t, width))
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

/// Heads in the middle of longer rows.
fn sliced(rotated: bool) -> Case {
    let build = move |g: &mut Graph| {
        let x = Slice::new(g.input("x", Type::f32([3, 100])), 20, 64);
        if !rotated {
            return vec![g.head_norm(x, 32, EPS)];
        }
        let weight = g.weight("w", Type::weight(DType::F32, [32]));
        let rope = g.input("rope", Type::f32([3, 16, 2]));
        vec![g.head_norm_rope(x, weight, rope, EPS)]
    };
    Case::new("head_norm_rope", format!("3x2x32 of 100 columns, rotated: {rotated}"), build)
        .given("rope", table(1000, 3, 32))
        .tolerance(Tolerance::ARITHMETIC.terms(32))
}

/// The layout of raw queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Projections {
    /// In separate buffers.
    Separate,
    /// The raw keys are also the raw values.
    KeysAreValues,
    /// In one row.
    Stacked,
}

/// The sizes of a case with KV caches.
#[derive(Clone, Copy)]
struct Shape {
    t: usize,
    heads: usize,
    kv_heads: usize,
    width: usize,
    slots: usize,
}

fn caches(element: Element) -> Vec<Case> {
    let shape = |t, heads, kv_heads, width, slots| Shape { t, heads, kv_heads, width, slots };
    let own = [
        (shape(1, 1, 1, 32, 1), 0, 1),
        (shape(1, 8, 1, 256, 5), 12, 1),
        (shape(3, 4, 2, 64, 7), 5, 3),
        (shape(17, 2, 2, 32, 20), 262_140, 9),
        (shape(2, 4, 1, 512, 3), 4, 2),
    ];
    let mut cases = Vec::new();
    for (i, (shape, position, count)) in own.into_iter().enumerate() {
        let projections =
            [Projections::Separate, Projections::KeysAreValues, Projections::Stacked][i % 3];
        cases.push(cached(element, shape, (position, count), projections, EPS.into()));
        cases.push(cached(element, shape, (position, count), projections, LLAMA));
    }
    for form in [EPS.into(), LLAMA, GEMMA3] {
        cases.push(cached(element, shape(3, 0, 2, 64, 7), (6, 2), Projections::Separate, form));
        cases.push(cached(element, shape(3, 6, 2, 64, 7), (6, 2), Projections::Stacked, form));
    }
    cases.push(cached(element, shape(3, 0, 2, 64, 7), (6, 2), Projections::Stacked, EPS.into()));
    if element != Element::Q8 {
        let (shape, values) = (shape(3, 4, 2, 48, 5), Projections::KeysAreValues);
        cases.push(cached(element, shape, (9, 2), values, EPS.into()));
    }
    cases
}

fn cached(
    element: Element,
    shape: Shape,
    (position, count): (u32, u32),
    projections: Projections,
    form: HeadForm,
) -> Case {
    let Shape { t, heads, kv_heads, width, slots } = shape;
    let build = move |g: &mut Graph| {
        let kv_width = kv_heads * width;
        let [q, k, v] = if projections == Projections::Stacked {
            let all = g.input("qkv", Type::f32([t, heads * width + 2 * kv_width]));
            let k = heads * width;
            [(0, k), (k, kv_width), (k + kv_width, kv_width)]
                .map(|(first, width)| Slice::new(all, first, width))
        } else {
            let k = g.input("k", Type::f32([t, kv_width])).into();
            let separate = projections == Projections::Separate;
            let v = if separate { g.input("v", Type::f32([t, kv_width])).into() } else { k };
            [g.input("q", Type::f32([t, heads * width])).into(), k, v]
        };
        let cache = Type::cache(element, [slots, kv_heads, width]);
        let norm = Type::weight(DType::F32, [width]);
        let rope = g.input("rope", Type::f32([t, width / 2, 2]));
        let weight = |g: &mut Graph, name: &str| match form.qk_norm {
            true => g.weight(name, norm.clone()),
            false => rope,
        };
        let kv = KvStoreInputs {
            k,
            v,
            k_norm: weight(g, "k_norm"),
            rope,
            k_cache: g.state("k_cache", cache.clone()),
            v_cache: g.state("v_cache", cache),
            sequences: None,
        };
        if heads == 0 {
            g.kv_rope(kv, form);
            return vec![kv.k_cache, kv.v_cache];
        }
        let q_norm = weight(g, "q_norm");
        vec![g.qkv_rope(q, q_norm, kv, form), kv.k_cache, kv.v_cache]
    };
    let name = format!(
        "{element:?} {t}x{heads}/{kv_heads}x{width} in {slots} at {position}+{count} {projections:?} {}",
        name(form)
    );
    let tolerance = match element {
        Element::F16 => Tolerance::ARITHMETIC.half(),
        // Values near a rounding boundary may round either way: one step is 1/127 of the largest of 32.
        Element::Q8 => Tolerance { unit: 1.0 / 256.0, ..Tolerance::ARITHMETIC },
        _ => Tolerance::ARITHMETIC.terms(width),
    };
    Case::new("head_norm_rope", name, build)
        .step(position, count)
        .given("rope", table(position, t, width))
        .tolerance(tolerance)
}

fn table(position: u32, t: usize, width: usize) -> Data {
    Data::F32(rope_table(position..position + t as u32, 1e4, width, None))
}
