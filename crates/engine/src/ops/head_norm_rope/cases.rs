use rullama_gguf::DType;

use super::{HeadNormRopeGrad, KvValues, rope_table};
use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, heads, width) in [(1, 1, 4), (3, 5, 16), (17, 3, 48), (2, 8, 256), (1, 4, 512)] {
        cases.push(turned(t, heads, width));
        cases.push(bare(t, heads, width));
        cases.push(back(t, heads, width));
    }
    let x = Data::F32(vec![1.0, 2.0, 2.0, 4.0]);
    cases.push(bare(1, 1, 4).given("x", x).gives(&[0.4, 0.8, 0.8, 1.6]));
    cases.push(turned(3, 2, 8).gradient());
    cases.push(bare(3, 2, 8).gradient());
    for element in [Element::F32, Element::F16, Element::Q8] {
        cases.extend(caches(element));
    }
    cases
}

fn turned(t: usize, heads: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, heads * width]));
        let weight = g.weight("w", Type::weight(DType::F32, [width]));
        // Tables have no gradient; as a state, none is asked for.
        let rope = g.state("rope", Type::f32([t, width / 2, 2]));
        vec![g.head_norm_rope(x, weight, rope, EPS)]
    };
    Case::new("head_norm_rope", format!("{t}x{heads}x{width} turned"), build)
        .given("rope", table(1000, t, width))
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}

fn bare(t: usize, heads: usize, width: usize) -> Case {
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

/// What tells a case with caches apart.
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
        cases.push(cached(element, shape, (position, count), i % 2 == 1));
    }
    cases.push(cached(element, shape(3, 0, 2, 64, 7), (6, 2), false));
    if element != Element::Q8 {
        cases.push(cached(element, shape(3, 4, 2, 48, 5), (9, 2), true));
    }
    cases
}

fn cached(element: Element, shape: Shape, (position, count): (u32, u32), shared: bool) -> Case {
    let Shape { t, heads, kv_heads, width, slots } = shape;
    let build = move |g: &mut Graph| {
        let k = g.input("k", Type::f32([t, kv_heads * width]));
        let v = if shared { k } else { g.input("v", Type::f32([t, kv_heads * width])) };
        let cache = Type::cache(element, [slots, kv_heads, width]);
        let norm = Type::weight(DType::F32, [width]);
        let kv = KvValues {
            k,
            v,
            k_norm: g.weight("k_norm", norm.clone()),
            rope: g.input("rope", Type::f32([t, width / 2, 2])),
            k_cache: g.state("k_cache", cache.clone()),
            v_cache: g.state("v_cache", cache),
        };
        if heads == 0 {
            g.kv_rope(kv, EPS);
            return vec![kv.k_cache, kv.v_cache];
        }
        let q = g.input("q", Type::f32([t, heads * width]));
        let q_norm = g.weight("q_norm", norm);
        vec![g.qkv_rope(q, q_norm, kv, EPS), kv.k_cache, kv.v_cache]
    };
    let same = if shared { " k = v" } else { "" };
    let name = format!(
        "{element:?} {t}x{heads}/{kv_heads}x{width} in {slots} at {position}+{count}{same}"
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
