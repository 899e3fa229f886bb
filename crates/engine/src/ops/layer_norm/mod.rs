//! `y[t, j] = (x[t, j] − mean(x[t, :])) · (variance(x[t, :]) + eps)^(-1/2) · w[j] + b[j]`, with or without the bias. A group is as long as
//! the weight; rows may hold several groups.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    graph::{Graph, Op, Type, Value},
    ops::{add_norm::gpu::lanes, parts::reduce},
};

static FORWARD: Kernel =
    Kernel { name: "layer_norm/forward", source: include_str!("forward.wgsl") };
static BIASED: &Part = part!("bias", "biased");
static PLAIN: &Part = part!("bias", "none");

/// Layer norm of each group.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNorm {
    /// Added to the variance before the root.
    pub eps: f32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

impl Graph {
    /// Layer norm of `x` with a weight and optionally a bias.
    pub fn layer_norm(&mut self, x: Value, weight: Value, bias: Option<Value>, eps: f32) -> Value {
        let inputs: Vec<Value> = [x, weight].into_iter().chain(bias).collect();
        self.apply(LayerNorm { eps }, &inputs)
    }
}

impl Op for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let width = inputs[0].shape.width();
        for row in &inputs[1..] {
            let whole = width.is_multiple_of(row.shape.len());
            assert!(whole, "layer_norm: {} with {row}", inputs[0]);
        }
        vec![Type::f32(inputs[0].shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, weight, mut y) = (call.f32(0), call.decoded(1), call.out(0));
        let bias = (call.inputs() > 2).then(|| call.decoded(2));
        let n = weight.len();
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            let mean = x.iter().sum::<f32>() / n as f32;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n as f32;
            let scale = 1.0 / (variance + self.eps).sqrt();
            for j in 0..n {
                y[j] = (x[j] - mean) * scale * weight[j] + bias.as_ref().map_or(0.0, |b| b[j]);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let width = call.input(1).shape.len();
        let rows = call.input(0).shape.len() / width;
        let biased = call.inputs() > 2;
        let dispatch = Dispatch::new(&FORWARD)
            .part(reduce(call.facts))
            .part(if biased { BIASED } else { PLAIN })
            .constant("WG", lanes(width, call.facts))
            .params(&Params { width: width as u32, eps: self.eps, rows: rows as u32 })
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(1))
            .write(BufferRef::Output(0))
            .grid_over(rows);
        vec![if biased { dispatch.read(BufferRef::Input(2)) } else { dispatch }]
    }
}
