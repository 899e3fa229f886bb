//! A product between limits, as towers have them: `y = W · clamp(x)`, and each row of it between the limits of its tensor, where several
//! are stacked; each limits what it takes by itself. What makes `x` can be part of it: norms and the residual sum, GeGLU or SiLU. Many
//! rows take two dispatches.

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
const MOST_STACKED: usize = 3;
/// Rows of the largest tile: tensors with multiples of it share none.
const WHOLE_ROWS: usize = 128;

/// A product between limits. Inputs: those of its begin, the weight. Results: `h1` where the begin makes it, then `y`.
#[derive(Debug, Clone, PartialEq)]
pub struct Clipped {
    /// What makes the rows it takes.
    pub begin: ClippedBegin,
    /// The tensors of the weight: up to three.
    pub stacked: Vec<Stacked>,
}

/// One of the tensors that are stacked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stacked {
    /// Its rows.
    pub rows: usize,
    /// Limits of what it takes.
    pub takes: Limits,
    /// Limits of what it gives.
    pub gives: Limits,
}

impl Stacked {
    /// Whether these tensors may be stacked: they take what is between the same limits, or no tile has rows of two of them.
    pub fn may_be_one(stacked: &[Self]) -> bool {
        let alike = stacked.iter().all(|tensor| tensor.takes == stacked[0].takes);
        let whole = stacked.iter().all(|tensor| tensor.rows.is_multiple_of(WHOLE_ROWS));
        stacked.len() <= MOST_STACKED && (alike || whole)
    }
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
        let weight = inputs[self.begin.inputs()];
        let products: Vec<Value> = self
            .versions()
            .iter()
            .map(|takes| {
                let x = takes.clamp(graph, x);
                graph.linear(x, weight)
            })
            .collect();
        let y = match self.stacked.as_slice() {
            [one] => one.gives.clamp(graph, products[0]),
            several => {
                let rows: Vec<usize> = several.iter().map(|tensor| tensor.rows).collect();
                let parts: Vec<Vec<Value>> =
                    products.iter().map(|y| graph.split_columns(*y, &rows)).collect();
                let clamp = |(i, tensor): (usize, &Stacked)| {
                    tensor.gives.clamp(graph, parts[self.version(tensor)][i])
                };
                let clamped: Vec<Value> = several.iter().enumerate().map(clamp).collect();
                graph.join_columns(&clamped)
            }
        };
        h1.into_iter().chain([y]).collect()
    }

    /// The different limits of what tensors take: there is a version of `x` for each.
    fn versions(&self) -> Vec<Limits> {
        let mut versions = Vec::new();
        for tensor in &self.stacked {
            if !versions.contains(&tensor.takes) {
                versions.push(tensor.takes);
            }
        }
        versions
    }

    /// Which of them a tensor takes.
    fn version(&self, tensor: &Stacked) -> usize {
        let own = self.versions().iter().position(|takes| *takes == tensor.takes);
        own.expect("each has a version")
    }
}

impl Op for Clipped {
    fn name(&self) -> &'static str {
        "clipped"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let rows = inputs[self.begin.inputs()].shape.rows();
        let stacked: usize = self.stacked.iter().map(|tensor| tensor.rows).sum();
        assert_eq!(rows, stacked, "clipped: rows with limits");
        assert!(self.stacked.len() <= MOST_STACKED, "clipped: {} tensors", self.stacked.len());
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

#[cfg(test)]
mod tests {
    use super::{Limits, Stacked};

    #[test]
    fn tensors_are_stacked_where_tiles_allow() {
        let some = Limits { least: -1.0, most: 1.0 };
        let tensor = |rows, takes| Stacked { rows, takes, gives: Limits::NONE };
        for (stacked, may) in [
            (vec![tensor(768, some), tensor(768, Limits::NONE)], true),
            (vec![tensor(100, some), tensor(100, some)], true),
            (vec![tensor(100, some), tensor(100, Limits::NONE)], false),
            (vec![tensor(768, some); 4], false),
        ] {
            assert_eq!(Stacked::may_be_one(&stacked), may, "{stacked:?}");
        }
    }
}
