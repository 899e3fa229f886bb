//! A linear layer with clamps, as encoders have them: `y = W · clamp(x)`, and each output row clamped as its tensor says. Stacked tensors
//! each clamp their input and output. The prologue can be part of it: norms and the residual sum, GeGLU or SiLU. Many rows take two
//! dispatches.

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

/// Tensors that may be stacked.
const MOST_STACKED: usize = 3;
/// Rows of the largest tile: tensors with multiples of it share none.
const WHOLE_ROWS: usize = 128;

/// A linear layer with clamps. Inputs: those of its prologue, the weight. Results: `h1` where the prologue computes it, then `y`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClampedLinear {
    /// Computes the activations; by numbers of inputs.
    pub prologue: ClampedPrologue<usize>,
    /// The tensors of the weight: up to three.
    pub stacked: Vec<Stacked>,
}

/// One of the tensors that are stacked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stacked {
    /// Its rows.
    pub rows: usize,
    /// Clamp of its input.
    pub input: Clamp,
    /// Clamp of its output.
    pub output: Clamp,
}

impl Stacked {
    /// Whether these tensors may be stacked: they clamp their input alike, or no tile has rows of two of them.
    pub fn may_be_one(stacked: &[Self]) -> bool {
        let alike = stacked.iter().all(|tensor| tensor.input == stacked[0].input);
        let whole = stacked.iter().all(|tensor| tensor.rows.is_multiple_of(WHOLE_ROWS));
        stacked.len() <= MOST_STACKED && (alike || whole)
    }
}

impl ClampedLinear {
    /// The operations this one stands for.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let (h1, x) = self.prologue.with(inputs).rows(graph);
        let weight = inputs[self.prologue.inputs()];
        let products: Vec<Value> = self
            .versions()
            .iter()
            .map(|input| {
                let x = input.clamp(graph, x);
                graph.linear(x, weight)
            })
            .collect();
        let y = match self.stacked.as_slice() {
            [one] => one.output.clamp(graph, products[0]),
            several => {
                let rows: Vec<usize> = several.iter().map(|tensor| tensor.rows).collect();
                let parts: Vec<Vec<Value>> =
                    products.iter().map(|y| graph.split_columns(*y, &rows)).collect();
                let clamp = |(i, tensor): (usize, &Stacked)| {
                    tensor.output.clamp(graph, parts[self.version(tensor)][i])
                };
                let clamped: Vec<Value> = several.iter().enumerate().map(clamp).collect();
                graph.join_columns(&clamped)
            }
        };
        h1.into_iter().chain([y]).collect()
    }

    /// The different clamps of the input: there is a version of `x` for each.
    fn versions(&self) -> Vec<Clamp> {
        let mut versions = Vec::new();
        for tensor in &self.stacked {
            if !versions.contains(&tensor.input) {
                versions.push(tensor.input);
            }
        }
        versions
    }

    /// Which version a tensor reads.
    fn version(&self, tensor: &Stacked) -> usize {
        let own = self.versions().iter().position(|input| *input == tensor.input);
        own.expect("each has a version")
    }
}

impl Op for ClampedLinear {
    fn name(&self) -> &'static str {
        "clamped_linear"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let rows = inputs[self.prologue.inputs()].shape.rows();
        let stacked: usize = self.stacked.iter().map(|tensor| tensor.rows).sum();
        assert_eq!(rows, stacked, "clamped_linear: rows with clamps");
        assert!(
            self.stacked.len() <= MOST_STACKED,
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
        for (stacked, may) in [
            (vec![tensor(768, some), tensor(768, Clamp::NONE)], true),
            (vec![tensor(100, some), tensor(100, some)], true),
            (vec![tensor(100, some), tensor(100, Clamp::NONE)], false),
            (vec![tensor(768, some); 4], false),
        ] {
            assert_eq!(Stacked::may_be_one(&stacked), may, "{stacked:?}");
        }
    }
}
