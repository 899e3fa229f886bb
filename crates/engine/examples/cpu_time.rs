//! Times the CPU executor on a graph with the shapes of a small model, in decoding and prefill:
//! `cargo run --release -p rullama-engine --example cpu_time`.
#![expect(clippy::print_stdout, reason = "a program whose result is a table")]

use std::time::Instant;

use rullama_engine::{
    EngineError,
    cpu::{CpuPlan, Data, Weight},
    graph::{Element, Graph, Step, Type},
};
use rullama_gguf::{DType, quant::quantize};

/// Width of the model, of its feed-forward part, of a head; heads; layers; vocabulary: 16 million weights.
const MODEL: usize = 512;
const HIDDEN: usize = 1536;
const HEAD: usize = 128;
const HEADS: usize = 4;
const LAYERS: usize = 4;
const VOCABULARY: usize = 4096;
const CONTEXT: usize = 512;

fn main() -> Result<(), EngineError> {
    for dtype in [DType::Q8_0, DType::Q4_K, DType::BF16] {
        for tokens in [1, 128] {
            report(dtype, tokens)?;
        }
    }
    Ok(())
}

/// Prints tokens per second, the best of ten runs at the end of the context.
fn report(dtype: DType, tokens: usize) -> Result<(), EngineError> {
    let plan = CpuPlan::new(graph(dtype, tokens), |_, ty| Some(weight(ty)))?;
    plan.write("ids", Data::U32((0..tokens as u32).collect()));
    let position = (CONTEXT - tokens) as u32;
    let step = Step { position, count: tokens as u32, ..Step::default() };
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        plan.run(&step);
        best = best.min(start.elapsed().as_secs_f64());
    }
    let name = dtype.name();
    println!("{name:6} {tokens:4} tokens  {:8.0} tokens/s", tokens as f64 / best);
    Ok(())
}

/// Layers of attention and a gated feed-forward part, then the logits of the last token.
fn graph(dtype: DType, tokens: usize) -> Graph {
    let mut g = Graph::new();
    let ids = g.input("ids", Type::u32([tokens]));
    let table = g.weight("table", Type::weight(dtype, [VOCABULARY, MODEL]));
    let mut x = g.embed(ids, table, 1.0);
    for layer in 0..LAYERS {
        let linear = |g: &mut Graph, name: &str, x, rows, width| {
            let weight = g.weight(format!("{layer}.{name}"), Type::weight(dtype, [rows, width]));
            g.linear(x, weight)
        };
        let normed = g.rms_norm(x, None, 1e-6);
        let q = linear(&mut g, "q", normed, HEADS * HEAD, MODEL);
        let q = g.head_norm(q, HEAD, 1e-6);
        let cache = g.state(format!("{layer}.cache"), Type::f32([CONTEXT, 1, HEAD]));
        let mixed = g.attention(q, cache, cache, None);
        let mixed = linear(&mut g, "o", mixed, MODEL, HEADS * HEAD);
        x = g.add(x, mixed);
        let normed = g.rms_norm(x, None, 1e-6);
        let both = linear(&mut g, "gate_up", normed, 2 * HIDDEN, MODEL);
        let gated = g.geglu_halves(both);
        let down = linear(&mut g, "down", gated, MODEL, HIDDEN);
        x = g.add(x, down);
    }
    let last = g.select_row(x);
    let logits = g.linear(last, table);
    g.top_k(logits, 64);
    g
}

fn weight(ty: &Type) -> Weight {
    let Element::Weight(dtype) = ty.element else { unreachable!("only weights are requested") };
    let values: Vec<f32> =
        (0..ty.shape.len()).map(|i| (i * 37 % 101) as f32 / 1000.0 - 0.05).collect();
    let bytes = quantize(dtype, &values).expect("a format that can be written");
    Weight::new(dtype, ty.shape.clone(), bytes)
}
