//! Cases of head norms, RoPE and KV cache writes.

use rullama_gguf::DType;

use super::{HeadNormRopeGrad, KvStoreInputs, rope_table};
use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    ops::Slice,
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, heads, width) in [(1, 1, 4), (3, 5, 16), (17, 3, 48), (2, 8, 256), (1, 4, 512)] {
        cases.push(rotated(t, heads, width));
        cases.push(rope_2d(t, heads, width));
        cases.push(norm_only(t, heads, width));
        cases.push(back(t, heads, width));
    }
    let x = Data::F32(vec![1.0, 2.0, 2.0, 4.0]);
    cases.push(norm_only(1, 1, 4).given("x", x).gives(&[0.4, 0.8, 0.8, 1.6]));
    cases.push(sliced(false));
    cases.push(sliced(true));
    cases.push(rotated(3, 2, 8).gradient());
    cases.push(norm_only(3, 2, 8).gradient());
    for element in [Element::F32, Element::F16, Element::Q8] {
        cases.extend(caches(element));
    }
    cases
}

fn rotated(t: usize, heads: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, heads * width]));
        let weight = g.weight("w", Type::weight(DType::F32, [width]));
        // Tables have no gradient; as a state, none is asked for.
        let rope = g.state("rope", Type::f32([t, width / 2, 2]));
        vec![g.head_norm_rope(x, weight, rope, EPS)]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width} rotated"), build)
        .given("rope", table(1000, t, width))
        .tolerance(Tolerance::ARITHMETIC.terms(width))
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

/// The kernel of the gradient; that it is the right one, the cases with `.gradient()` show.
fn back(t: usize, heads: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let (x, dy) = (
            g.input("x", Type::f32([t, heads * width])),
            g.input("dy", Type::f32([t, heads, width])),
        );
        let weight = g.weight("w", Type::weight(DType::F32, [width]));
        let rope = g.input("rope", Type::f32([t, width / 2, 2]));
        let op = HeadNormRopeGrad { width, eps: EPS };
        vec![g.apply(op.clone(), &[x, dy, weight, rope]), g.apply(op, &[x, dy])]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width} back"), build)
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

/// How raw queries, keys and values are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Projections {
    /// In a buffer each.
    Separate,
    /// The raw keys are the raw values too.
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
        cases.push(cached(element, shape, (position, count), projections));
    }
    cases.push(cached(element, shape(3, 0, 2, 64, 7), (6, 2), Projections::Separate));
    cases.push(cached(element, shape(3, 0, 2, 64, 7), (6, 2), Projections::Stacked));
    if element != Element::Q8 {
        cases.push(cached(element, shape(3, 4, 2, 48, 5), (9, 2), Projections::KeysAreValues));
    }
    cases
}

fn cached(
    element: Element,
    shape: Shape,
    (position, count): (u32, u32),
    projections: Projections,
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
        let kv = KvStoreInputs {
            k,
            v,
            k_norm: g.weight("k_norm", norm.clone()),
            rope: g.input("rope", Type::f32([t, width / 2, 2])),
            k_cache: g.state("k_cache", cache.clone()),
            v_cache: g.state("v_cache", cache),
            sequences: None,
        };
        if heads == 0 {
            g.kv_rope(kv, EPS);
            return vec![kv.k_cache, kv.v_cache];
        }
        let q_norm = g.weight("q_norm", norm);
        vec![g.qkv_rope(q, q_norm, kv, EPS), kv.k_cache, kv.v_cache]
    };
    let name = format!(
        "{element:?} {t}x{heads}/{kv_heads}x{width} in {slots} at {position}+{count} {projections:?}"
    );
    let tolerance = match element {
        Element::F16 => Tolerance::ARITHMETIC.half(),
        // Numbers next to a rounding border may go either way: one step is 1/127 of the largest of 32.
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
