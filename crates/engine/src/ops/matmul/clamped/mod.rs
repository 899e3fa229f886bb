//! The linear layer of the encoders, with clamps: `y = clamp(W · clamp(x))`. Stacked tensors each have their own input and output clamp. It
//! may be fused with a prologue: norms and the residual add, GeGLU or SiLU. Many rows take two dispatches.

mod build;
pub(crate) mod cases;
mod gpu;
mod prologue;

pub use build::Clamp;
pub use prologue::ClampedPrologue;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
    ops::fused,
};

/// Maximum number of stacked tensors.
const MAX_STACKED: usize = 3;
/// Rows of the largest tile: tensors with multiples of it share no tile.
const WHOLE_ROWS: usize = 128;

/// A linear layer with clamps. Inputs: those of its prologue, the weight. Results: `h1` if the prologue computes it, then `y`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClampedLinear {
    /// Computes the activations; by input index.
    pub prologue: ClampedPrologue<usize>,
    /// The tensors of the weight: up to three.
    pub stacked: Vec<Stacked>,
}

/// One of the stacked tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stacked {
    /// Number of rows.
    pub rows: usize,
    /// Clamp of its input.
    pub input: Clamp,
    /// Clamp of its output.
    pub output: Clamp,
}

impl Stacked {
    /// Whether these tensors can be stacked: they have the same input clamp, or no tile has rows of two of them.
    pub fn can_be_fused(stacked: &[Self]) -> bool {
        let same_clamp = stacked.iter().all(|tensor| tensor.input == stacked[0].input);
        let whole_tiles = stacked.iter().all(|tensor| tensor.rows.is_multiple_of(WHOLE_ROWS));
        stacked.len() <= MAX_STACKED && (same_clamp || whole_tiles)
    }
}

impl ClampedLinear {
    /// The equivalent simpler operations.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let (h1, x) = self.prologue.with(inputs).rows(graph);
        let weight = inputs[self.prologue.inputs()];
        let outputs: Vec<Value> = self
            .versions()
            .iter()
            .map(|input| {
                let x = input.clamp(graph, x);
                graph.linear(x, weight)
            })
            .collect();
        let y = match self.stacked.as_slice() {
            [one] => one.output.clamp(graph, outputs[0]),
            several => {
                let rows: Vec<usize> = several.iter().map(|tensor| tensor.rows).collect();
                let parts: Vec<Vec<Value>> =
                    outputs.iter().map(|y| graph.split_columns(*y, &rows)).collect();
                let clamp = |(i, tensor): (usize, &Stacked)| {
                    tensor.output.clamp(graph, parts[self.version(tensor)][i])
                };
                let clamped: Vec<Value> = several.iter().enumerate().map(clamp).collect();
                graph.join_columns(&clamped)
            }
        };
        h1.into_iter().chain([y]).collect()
    }

    /// The distinct input clamps: there is a version of `x` for each.
    fn versions(&self) -> Vec<Clamp> {
        let mut versions = Vec::new();
        for tensor in &self.stacked {
            if !versions.contains(&tensor.input) {
                versions.push(tensor.input);
            }
        }
        versions
    }

    /// The version of `x` that a tensor reads.
    fn version(&self, tensor: &Stacked) -> usize {
        let own = self.versions().iter().position(|input| *input == tensor.input);
        own.expect("every input clamp has a version")
    }
}

impl Op for ClampedLinear {
    fn name(&self) -> &'static str {
        "clamped_linear"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let rows = inputs[self.prologue.inputs()].shape.rows();
        let stacked: usize = self.stacked.iter().map(|tensor| tensor.rows).sum();
        assert_eq!(rows, stacked, "clamped_linear: rows of the weight and of its tensors");
        assert!(
            self.stacked.len() <= MAX_STACKED,
            "clamped_linear: {} tensors",
            self.stacked.len()
        );
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
        2 * inputs[0].shape.rows() as u64 * inputs[self.prologue.inputs()].shape.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Clamp, Stacked};

    #[test]
    fn tensors_are_stacked_where_tiles_allow() {
        let some = Clamp { least: -1.0, most: 1.0 };
        let tensor = |rows, input| Stacked { rows, input, output: Clamp::NONE };
        for (stacked, expected) in [
            (vec![tensor(768, some), tensor(768, Clamp::NONE)], true),
            (vec![tensor(100, some), tensor(100, some)], true),
            (vec![tensor(100, some), tensor(100, Clamp::NONE)], false),
            (vec![tensor(768, some); 4], false),
        ] {
            assert_eq!(Stacked::can_be_fused(&stacked), expected, "{stacked:?}");
        }
    }
}
