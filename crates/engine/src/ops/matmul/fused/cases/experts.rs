//! Linear layers over experts: gates after a norm, and sums.

use rullama_gguf::DType;

use super::{super::Mixture, EPS, tolerance};
use crate::{
    cpu::Data,
    graph::{Graph, Type, Value},
    ops::{Epilogue, Prologue, Routes},
    suite::{Case, Tolerance},
};

/// Tokens, experts per token, experts, rows, width.
#[derive(Debug, Clone, Copy)]
struct Shape(usize, usize, usize, usize, usize);

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dtype, shape) in [
        // One dispatch; unfused operations, because of the width, the slabs on the floor device or the tokens; sorted by expert.
        (DType::F32, Shape(1, 1, 1, 2, 32)),
        (DType::Q5_0, Shape(1, 3, 5, 34, 96)),
        (DType::Q8_0, Shape(1, 8, 11, 18, 704)),
        (DType::Q4_K, Shape(1, 2, 3, 70, 512)),
        (DType::F16, Shape(1, 2, 3, 6, 17)),
        (DType::Q4_0, Shape(3, 2, 5, 8, 64)),
        (DType::Q4_0, Shape(6, 2, 3, 8, 64)),
    ] {
        cases.extend([gated(dtype, shape), plain(dtype, shape), summed(dtype, shape)]);
    }
    for (dtype, shape) in [
        (DType::F32, Shape(1, 1, 1, 64, 32)),
        (DType::Q5_0, Shape(1, 3, 5, 192, 96)),
        (DType::Q8_0, Shape(1, 8, 11, 1408, 64)),
        (DType::Q4_K, Shape(1, 2, 3, 1024, 64)),
        (DType::Q4_0, Shape(2, 2, 5, 128, 64)),
    ] {
        cases.push(up_and_down(dtype, shape));
    }
    let small = Shape(1, 2, 3, 4, 32);
    cases.extend([gated(DType::F32, small), summed(DType::F32, small)].map(Case::gradient));
    // A layer of Gemma 4 26B-A4B.
    cases.push(gated(DType::Q4_K, Shape(1, 8, 128, 1408, 2816)).bench());
    cases.push(summed(DType::Q5_0, Shape(1, 8, 128, 2816, 704)).bench());
    cases.push(summed(DType::Q8_0, Shape(1, 8, 128, 2816, 704)).bench());
    cases.push(chain());
    cases
}

/// The experts of consecutive layers, for timing.
fn chain() -> Case {
    const LINKS: usize = 4;
    let up = Shape(1, 8, 128, 1408, 2816);
    let build = move |g: &mut Graph| vec![feed_forward(g, LINKS, [DType::Q4_K, DType::Q5_0], up)];
    case("and back, in a chain", DType::Q4_K, up, build).chain(LINKS)
}

/// One layer: the gated activations are in the layout of the next weights, as one long row.
fn up_and_down(down: DType, up: Shape) -> Case {
    let build = move |g: &mut Graph| vec![feed_forward(g, 1, [DType::Q8_0, down], up)];
    let Shape(_, k, _, rows, width) = up;
    case("and back", down, up, build).tolerance(tolerance(width * k * rows / 2))
}

/// `links` layers: a norm, gate and up of the experts, down, summed.
fn feed_forward(g: &mut Graph, links: usize, [gates, down_type]: [DType; 2], up: Shape) -> Value {
    let Shape(t, k, experts, rows, width) = up;
    let mut h = g.input("h", Type::f32([t, width]));
    let shares = g.input("shares", Type::f32([t, k]));
    let ids = g.input("ids", Type::u32([t, k]));
    let each = Mixture { routes: Routes { ids, groups: None }, shares: None };
    for i in 0..links {
        let norm = g.weight(format!("norm{i}"), Type::weight(DType::F32, [width]));
        let prologue = Prologue::Norm { h, weight: norm, eps: EPS };
        let gate_up = g.weight(format!("up{i}"), Type::weight(gates, [experts, rows, width]));
        let both = g.fused_linear_experts(&prologue, gate_up, &each, &Epilogue::GEGLU).1;
        let down = Type::weight(down_type, [experts, width, rows / 2]);
        let down = g.weight(format!("down{i}"), down);
        let sum = Mixture { shares: Some(shares), ..each };
        h = g.fused_linear_experts(&Prologue::Rows(both), down, &sum, &Epilogue::Plain).1;
    }
    h
}

fn gated(dtype: DType, shape: Shape) -> Case {
    let build = move |g: &mut Graph| vec![after_norm(g, dtype, shape, &Epilogue::GEGLU)];
    // GELU has small results for negative arguments, which are differences of larger values.
    let size = (shape.4 as f32).sqrt();
    let tolerance = Tolerance::EXPONENTIAL.terms(shape.4).cancelling(size);
    case("gated", dtype, shape, build).tolerance(tolerance)
}

fn plain(dtype: DType, shape: Shape) -> Case {
    let build = move |g: &mut Graph| vec![after_norm(g, dtype, shape, &Epilogue::Plain)];
    case("plain", dtype, shape, build).tolerance(Tolerance::ARITHMETIC.terms(shape.4))
}

fn after_norm(g: &mut Graph, dtype: DType, shape: Shape, epilogue: &Epilogue) -> Value {
    let Shape(t, .., width) = shape;
    let (h, norm) = (g.input("h", Type::f32([t, width])), Type::weight(DType::F32, [width]));
    let prologue = Prologue::Norm { h, weight: g.weight("norm", norm), eps: EPS };
    let (weight, mixture) = experts(g, dtype, shape);
    g.fused_linear_experts(&prologue, weight, &mixture, epilogue).1
}

fn summed(dtype: DType, shape: Shape) -> Case {
    let Shape(t, k, _, _, width) = shape;
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, k, width]));
        let (weight, mixture) = experts(g, dtype, shape);
        let mixture = Mixture { shares: Some(g.input("shares", Type::f32([t, k]))), ..mixture };
        vec![g.fused_linear_experts(&Prologue::Rows(x), weight, &mixture, &Epilogue::Plain).1]
    };
    case("summed", dtype, shape, build).tolerance(Tolerance::ARITHMETIC.terms(k * width))
}

fn experts(g: &mut Graph, dtype: DType, shape: Shape) -> (Value, Mixture) {
    let Shape(t, k, experts, rows, width) = shape;
    let ids = g.input("ids", Type::u32([t, k]));
    let routes = g.routes(ids, experts);
    let weight = g.weight("w", Type::weight(dtype, [experts, rows, width]));
    (weight, Mixture { routes, shares: None })
}

fn case(
    what: &str,
    dtype: DType,
    shape: Shape,
    build: impl Fn(&mut Graph) -> Vec<Value> + 'static,
) -> Case {
    let Shape(t, k, experts, rows, width) = shape;
    let ids = (0..t * k).map(|i| (i * 7919 % 1009 % experts) as u32).collect();
    let name = format!("{} {t}x{width} to {k} of {experts}x{rows} {what}", dtype.name());
    Case::new("fused_linear", name, build).given("ids", Data::U32(ids)).step(0, t as u32)
}
