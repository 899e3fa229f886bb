//! Local attention: causal over the last rows, with relative position embeddings and a softcap on scores:
//! `o[i, h] = Σ_d softmax_d(cap · tanh((q[i, h] · k[i − d, h] + q[i, h] · r[d, h]) / cap)) · v[i − d, h]`, `0 ≤ d ≤ min(reach, i)`.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::{CpuCall, add_scaled, dot},
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, Op, Type, Value},
    ops::parts::GELU,
};

static FORWARD: Kernel =
    Kernel { name: "local_attention/forward", source: include_str!("forward.wgsl") };

/// Maximum number of distances: the kernel has a lane for each.
const MAX_DISTANCES: usize = 64;

/// Local attention of rows to themselves and the rows before.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalAttention {
    /// Heads per row.
    pub heads: usize,
    /// Softcap of the scores.
    pub cap: f32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    heads: u32,
    width: u32,
    distances: u32,
    cap: f32,
}

impl Graph {
    /// `q`, `k` and `v` `[n, h·e]`, and relative position embeddings for distances 0, 1, … `[reach + 1, h·e]`: `[n, h·e]`.
    pub fn local_attention(
        &mut self,
        [q, k, v]: [Value; 3],
        distances: Value,
        heads: usize,
        cap: f32,
    ) -> Value {
        self.apply(LocalAttention { heads, cap }, &[q, k, v, distances])
    }
}

impl Op for LocalAttention {
    fn name(&self) -> &'static str {
        "local_attention"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [q, k, v, distances] = inputs else {
            panic!("local_attention takes q, k, v, distances")
        };
        assert!(q == k && k == v, "local_attention: {q}, {k} and {v}");
        let (width, reach) = (q.shape.width(), distances.shape.rows());
        let fits = width.is_multiple_of(self.heads) && distances.shape.width() == width;
        assert!(fits, "local_attention: {q} in {} heads with {distances}", self.heads);
        assert!((1..=MAX_DISTANCES).contains(&reach), "local_attention: {reach} distances");
        vec![Type::f32(q.shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v, r) = (call.f32(0), call.f32(1), call.f32(2), call.f32(3));
        let mut out = call.out(0);
        let row = call.input(0).shape.width();
        let (width, reach) = (row / self.heads, r.len() / row);
        out.fill(0.0);
        for (index, out) in out.chunks_exact_mut(width).enumerate() {
            let (i, at) = (index / self.heads, index % self.heads * width);
            let head = |x: &[f32], row_index: usize| x[row_index * row + at..][..width].to_vec();
            let q = head(&q, i);
            let score = |d: usize| {
                let raw = dot(&q, &head(&k, i - d)) + dot(&q, &head(&r, d));
                self.cap * (raw / self.cap).tanh()
            };
            let scores: Vec<f32> = (0..reach.min(i + 1)).map(score).collect();
            let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = scores.iter().map(|score| (score - largest).exp()).sum();
            for (d, score) in scores.iter().enumerate() {
                add_scaled(out, (score - largest).exp() / sum, &head(&v, i - d));
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let shape = &call.input(0).shape;
        let params = Params {
            heads: self.heads as u32,
            width: (shape.width() / self.heads) as u32,
            distances: call.input(3).shape.rows() as u32,
            cap: self.cap,
        };
        let dispatch = Dispatch::new(&FORWARD).part(GELU).params(&params);
        let dispatch = (0..4).map(BufferRef::Input).fold(dispatch, Dispatch::read);
        vec![dispatch.write(BufferRef::Output(0)).grid(self.heads, shape.rows(), 1)]
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        6 * inputs[0].shape.len() as u64 * inputs[3].shape.rows() as u64
    }
}
