//! A product between limits, as towers have them: `y = W · clamp(x)`, and each row of it between the limits of its tensor, where several
//! are stacked. What makes `x` can be part of it: norms and the residual sum, GeGLU or SiLU. Many rows take two launches.

mod build;
pub(crate) mod cases;
mod gpu;

pub use build::{ClippedStart, Limits};

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
    ops::{AddNorm, fused},
};

/// Tensors that may be stacked.
pub const MOST_STACKED: usize = 3;

/// A product between limits. Inputs: those of its begin, the weight. Results: `h1` where the begin makes it, then `y`.
#[derive(Debug, Clone, PartialEq)]
pub struct Clipped {
    /// What makes the rows it takes.
    pub begin: ClippedBegin,
    /// Limits of those rows.
    pub takes: Limits,
    /// Rows of the stacked tensors, and the limits of what they make: up to [`MOST_STACKED`].
    pub gives: Vec<(usize, Limits)>,
}

/// What makes the rows of a product.
#[derive(Debug, Clone, PartialEq)]
pub enum ClippedBegin {
    /// `x`
    Plain,
    /// `rms(h) ⊙ next`, of `h` and `next`
    Norm {
        /// Added to the mean, inside the root.
        eps: f32,
    },
    /// The last result of [`AddNorm`] with a next norm, with its inputs; its first is a result of the product too.
    Added(AddNorm),
    /// `gelu(a) ⊙ b`, where rows of `a` and `b` are the halves of rows twice as long
    Geglu,
    /// `gelu(a) ⊙ b`, of `a` and `b`
    Gated,
    /// `x ⊙ σ(x)`
    Silu,
}

impl ClippedBegin {
    /// How many inputs it has.
    fn inputs(&self) -> usize {
        match self {
            Self::Plain | Self::Geglu | Self::Silu => 1,
            Self::Norm { .. } | Self::Gated => 2,
            Self::Added(op) => op.inputs(),
        }
    }

    /// What it makes of its inputs: `h1`, where it does, and `x`.
    fn rows(&self, graph: &mut Graph, inputs: &[Value]) -> (Option<Value>, Value) {
        match self {
            Self::Plain => (None, inputs[0]),
            Self::Norm { eps } => (None, graph.rms_norm(inputs[0], Some(inputs[1]), *eps)),
            Self::Geglu => (None, graph.geglu_halves(inputs[0])),
            Self::Gated => (None, graph.geglu(inputs[0], inputs[1])),
            Self::Silu => (None, graph.silu(inputs[0])),
            Self::Added(op) => {
                let made = graph.apply_all(op.clone(), &inputs[..self.inputs()]);
                (Some(made[0]), made[made.len() - 1])
            }
        }
    }
}

impl Clipped {
    /// The operations this one stands for.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let (h1, x) = self.begin.rows(graph, inputs);
        let x = self.takes.clamp(graph, x);
        let y = graph.linear(x, inputs[self.begin.inputs()]);
        let y = match self.gives.as_slice() {
            [(_, limits)] => limits.clamp(graph, y),
            several => {
                let rows: Vec<usize> = several.iter().map(|(rows, _)| *rows).collect();
                let parts = graph.split_columns(y, &rows);
                let parts = parts.iter().zip(several);
                let clamped: Vec<Value> =
                    parts.map(|(part, (_, limits))| limits.clamp(graph, *part)).collect();
                graph.join_columns(&clamped)
            }
        };
        h1.into_iter().chain([y]).collect()
    }
}

impl Op for Clipped {
    fn name(&self) -> &'static str {
        "clipped"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let rows = inputs[self.begin.inputs()].shape.rows();
        let stacked: usize = self.gives.iter().map(|(rows, _)| rows).sum();
        assert_eq!(rows, stacked, "clipped: rows with limits");
        assert!(self.gives.len() <= MOST_STACKED, "clipped: {} tensors", self.gives.len());
        fused::infer(inputs, &|graph, inputs| self.unfused(graph, inputs))
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        fused::cpu(call, &|graph, inputs| self.unfused(graph, inputs));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
            .unwrap_or_else(|| fused::gpu(call, &|graph, inputs| self.unfused(graph, inputs)))
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        2 * inputs[0].shape.rows() as u64 * inputs[self.begin.inputs()].shape.len() as u64
    }
}
