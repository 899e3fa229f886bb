//! Per-layer inputs: `ple[t, l, :] = (√P · row[t, l, :] + rms(projection[t, l, :] / √d) ⊙ w) / √2`, over slices of `P` elements.

pub(crate) mod cases;
mod gpu;
#[cfg(test)]
mod tests;

use crate::{
    cpu::{CpuCall, dot},
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::RmsNormGrad,
};

/// Per-layer inputs from the table's rows and the model's projection.
#[derive(Debug, Clone, PartialEq)]
pub struct Ple {
    /// Width of the model, `d`.
    pub model_width: usize,
    /// Added to each mean square before the root.
    pub eps: f32,
}

impl Graph {
    /// Combines rows of the table and the projection, both `[t, l·p]`, with the norm weight `[p]` shared by all slices.
    pub fn ple(&mut self, op: Ple, rows: Value, projection: Value, weight: Value) -> Value {
        self.apply(op, &[rows, projection, weight])
    }
}

impl Ple {
    /// Factors of a row and of the projection.
    fn factors(&self, slice: usize) -> (f32, f32) {
        ((slice as f64).sqrt() as f32, (self.model_width as f64).sqrt().recip() as f32)
    }
}

impl Op for Ple {
    fn name(&self) -> &'static str {
        "ple"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [rows, projection, weight] = inputs else { panic!("ple takes three inputs") };
        assert_eq!(rows, projection, "ple: rows and projection must have one type");
        let fits = rows.shape.width().is_multiple_of(weight.shape.len());
        assert!(fits, "ple: {rows} in slices of weight {weight}");
        vec![Type::f32(rows.shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (rows, projection, weight) = (call.f32(0), call.f32(1), call.decoded(2));
        let n = weight.len();
        let (row_factor, projection_factor) = self.factors(n);
        let mut y = call.out(0);
        for (slice, y) in y.chunks_exact_mut(n).enumerate() {
            let row = &rows[slice * n..][..n];
            let b: Vec<f32> =
                projection[slice * n..][..n].iter().map(|x| x * projection_factor).collect();
            let mean = dot(&b, &b) / n as f32;
            let rho = 1.0 / (mean + self.eps).sqrt();
            for j in 0..n {
                y[j] = (row[j] * row_factor + b[j] * rho * weight[j])
                    * std::f32::consts::FRAC_1_SQRT_2;
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let Some(dy) = dy[0] else { return vec![None; 3] };
        let (projection, weight) = (node.inputs[1], node.inputs[2]);
        let width = graph.ty(weight).shape.len();
        let (row_factor, projection_factor) = self.factors(width);
        let half = graph.scale(dy, std::f32::consts::FRAC_1_SQRT_2);
        let rows = graph.scale(half, row_factor);
        let b = graph.scale(projection, projection_factor);
        let norm = RmsNormGrad { width, eps: self.eps };
        let db = graph.rms_norm_grad(norm, b, half, Some(weight));
        vec![Some(rows), Some(graph.scale(db, projection_factor)), None]
    }
}
