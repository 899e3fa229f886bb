//! Functions of single elements: products, scales, activations, gated activations (GeGLU, SwiGLU), the logit cap, slices of per-layer inputs, and their slopes.
//!
//! `gelu(z) = z/2 · (1 + tanh(√(2/π) · (z + 0.044715 · z³)))`. All share one kernel, of which the function is a part.

pub(crate) mod cases;
mod cpu;
mod gpu;
mod grad;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, Edge, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
};

/// The activation of the gate in a gated feed-forward layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `gelu(x)`, its tanh form: GeGLU.
    Gelu,
    /// `x · σ(x)`: SwiGLU.
    Silu,
}

/// What is computed for each element of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Elementwise {
    /// `a · b`
    Mul,
    /// `x · by`
    Scale {
        /// The factor.
        by: f32,
    },
    /// `x · s[0]`
    ScaleBy,
    /// `gelu(x)`
    Gelu,
    /// `dy · gelu'(x)`, of `x` and `dy`
    GeluGrad,
    /// `f(a) · b`
    Gated(Activation),
    /// `f(a) · b`, where rows of `a` and `b` are the halves of rows twice as long
    GatedHalves(Activation),
    /// Gradients of both halves in rows of the same kind, of the halves and `dy`
    GatedHalvesGrad(Activation),
    /// `cap · tanh(x / cap)`
    Softcap {
        /// Bound of the results' magnitude.
        cap: f32,
    },
    /// `dy · (1 − (l / cap)²)`, of the capped values `l` and `dy`
    SoftcapGrad {
        /// The forward cap.
        cap: f32,
    },
    /// `x` clamped to a range
    Clamp {
        /// Lower bound.
        least: f32,
        /// Upper bound.
        most: f32,
    },
    /// `(x − b[column]) · s[column]`
    Standardise,
    /// `x · σ(x)`
    Silu,
    /// `dy · silu'(x)`, of `x` and `dy`
    SiluGrad,
    /// `a · σ(b)`, where rows of `a` and `b` are the halves of rows twice as long
    GluHalves,
    /// `x + b[column]`
    AddRow,
    /// `x · by · s[column]`, where `s` is repeated if it is shorter than a row
    ScaleRow {
        /// The factor.
        by: f32,
    },
    /// `gelu(u) · long[:, slice]`
    GeluMulSlice {
        /// Index of the slice, in units of the width of `u`.
        slice: usize,
    },
    /// `x · long[:, slice]`
    MulSlice {
        /// Index of the slice, in units of the width of `x`.
        slice: usize,
    },
    /// Rows of `slices` slices, with `x` at `slice` and zeros elsewhere
    PlaceSlice {
        /// Index of the slice, in units of the width of `x`.
        slice: usize,
        /// Number of slices.
        slices: usize,
    },
}

impl Graph {
    /// `a ⊙ b`, both of one shape.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.apply(Elementwise::Mul, &[a, b])
    }

    /// `x` times a constant.
    pub fn scale(&mut self, x: Value, by: f32) -> Value {
        self.apply(Elementwise::Scale { by }, &[x])
    }

    /// `x` times the only element of `s`, which is frozen: no gradient flows into it.
    pub fn scale_by(&mut self, x: Value, s: Value) -> Value {
        self.apply(Elementwise::ScaleBy, &[x, s])
    }

    /// `gelu(x)`.
    pub fn gelu(&mut self, x: Value) -> Value {
        self.apply(Elementwise::Gelu, &[x])
    }

    /// `gelu(a) ⊙ b`.
    pub fn geglu(&mut self, a: Value, b: Value) -> Value {
        self.gated(a, b, Activation::Gelu)
    }

    /// `f(a) ⊙ b`.
    pub fn gated(&mut self, a: Value, b: Value, activation: Activation) -> Value {
        self.apply(Elementwise::Gated(activation), &[a, b])
    }

    /// `gelu(a) ⊙ b` of rows `[a, b]`: `[t, 2f]` to `[t, f]`.
    pub fn geglu_halves(&mut self, ab: Value) -> Value {
        self.gated_halves(ab, Activation::Gelu)
    }

    /// `f(a) ⊙ b` of rows `[a, b]`: `[t, 2f]` to `[t, f]`.
    pub fn gated_halves(&mut self, ab: Value, activation: Activation) -> Value {
        self.apply(Elementwise::GatedHalves(activation), &[ab])
    }

    /// `cap · tanh(x / cap)`.
    pub fn softcap(&mut self, x: Value, cap: f32) -> Value {
        self.apply(Elementwise::Softcap { cap }, &[x])
    }

    /// `x` clamped to a range; bounds may be infinite.
    pub fn clamp(&mut self, x: Value, least: f32, most: f32) -> Value {
        self.apply(
            Elementwise::Clamp { least: least.max(f32::MIN), most: most.min(f32::MAX) },
            &[x],
        )
    }

    /// `(x − bias) ⊙ scale` for every row; bias and scale are frozen: no gradient rule.
    pub fn standardise(&mut self, x: Value, bias: Value, scale: Value) -> Value {
        self.apply(Elementwise::Standardise, &[x, bias, scale])
    }

    /// `x ⊙ σ(x)`, where σ is the logistic function.
    pub fn silu(&mut self, x: Value) -> Value {
        self.apply(Elementwise::Silu, &[x])
    }

    /// `a ⊙ σ(b)` of rows `[a, b]`: `[t, 2f]` to `[t, f]`.
    pub fn glu_halves(&mut self, ab: Value) -> Value {
        self.apply(Elementwise::GluHalves, &[ab])
    }

    /// `x` and the same row added to each of its rows, which is frozen: no gradient flows into it.
    pub fn add_row(&mut self, x: Value, row: Value) -> Value {
        self.apply(Elementwise::AddRow, &[x, row])
    }

    /// `x` times a constant and `row`, which is repeated if it is shorter than the rows of `x`; no gradient rule.
    pub fn scale_row(&mut self, x: Value, row: Value, by: f32) -> Value {
        self.apply(Elementwise::ScaleRow { by }, &[x, row])
    }

    /// `gelu(u) ⊙ long[:, slice]`: `u` `[t, p]`, `long` `[t, l·p]`.
    pub fn gelu_mul_slice(&mut self, u: Value, long: Value, slice: usize) -> Value {
        self.apply(Elementwise::GeluMulSlice { slice }, &[u, long])
    }
}

impl Elementwise {
    /// Row width of the input whose rows are longer or shorter than the result's; 0 if there is none.
    fn other_width(&self, width: &dyn Fn(usize) -> usize) -> usize {
        match self {
            Self::GatedHalves(_) | Self::GluHalves | Self::PlaceSlice { .. } => width(0),
            Self::ScaleRow { .. }
            | Self::GatedHalvesGrad(_)
            | Self::GeluMulSlice { .. }
            | Self::MulSlice { .. } => width(1),
            _ => 0,
        }
    }

    /// First column of the slice in the longer rows; 0 if there is none.
    fn offset(&self, width: &dyn Fn(usize) -> usize) -> usize {
        match self {
            Self::GeluMulSlice { slice }
            | Self::MulSlice { slice }
            | Self::PlaceSlice { slice, .. } => slice * width(0),
            _ => 0,
        }
    }

    /// The constants of the formula.
    fn constants(&self) -> [f32; 2] {
        match self {
            Self::Scale { by } | Self::ScaleRow { by } => [*by, 0.0],
            Self::Softcap { cap } | Self::SoftcapGrad { cap } => [*cap, 0.0],
            Self::Clamp { least, most } => [*least, *most],
            _ => [0.0; 2],
        }
    }

    /// Row width of the result for a first input of this row width.
    fn width_from(&self, first: usize) -> usize {
        match self {
            Self::GatedHalves(_) | Self::GluHalves => first / 2,
            Self::PlaceSlice { slices, .. } => first * slices,
            _ => first,
        }
    }
}

impl Op for Elementwise {
    fn name(&self) -> &'static str {
        match self {
            Self::Mul => "mul",
            Self::Scale { .. } => "scale",
            Self::ScaleBy => "scale_by",
            Self::Gelu => "gelu",
            Self::GeluGrad => "gelu_grad",
            Self::Gated(Activation::Gelu) => "geglu",
            Self::Gated(Activation::Silu) => "swiglu",
            Self::GatedHalves(Activation::Gelu) => "geglu_halves",
            Self::GatedHalves(Activation::Silu) => "swiglu_halves",
            Self::GatedHalvesGrad(Activation::Gelu) => "geglu_halves_grad",
            Self::GatedHalvesGrad(Activation::Silu) => "swiglu_halves_grad",
            Self::Softcap { .. } => "softcap",
            Self::SoftcapGrad { .. } => "softcap_grad",
            Self::Clamp { .. } => "clamp",
            Self::Standardise => "standardise",
            Self::Silu => "silu",
            Self::SiluGrad => "silu_grad",
            Self::GluHalves => "glu_halves",
            Self::AddRow => "add_row",
            Self::ScaleRow { .. } => "scale_row",
            Self::GeluMulSlice { .. } => "gelu_mul_slice",
            Self::MulSlice { .. } => "mul_slice",
            Self::PlaceSlice { .. } => "place_slice",
        }
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (name, first) = (self.name(), &inputs[0].shape);
        let rows_and = |width: usize| Type::f32([first.rows(), width]);
        match self {
            Self::Mul
            | Self::GeluGrad
            | Self::SiluGrad
            | Self::Gated(_)
            | Self::SoftcapGrad { .. } => {
                assert_eq!(inputs[0], inputs[1], "{name}: both sides must have one type");
            }
            Self::ScaleBy => assert_eq!(inputs[1].shape.len(), 1, "{name} by {}", inputs[1]),
            Self::GatedHalves(_) | Self::GluHalves => {
                assert!(first.width().is_multiple_of(2), "{name}: {first} has no halves");
            }
            Self::GatedHalvesGrad(_) => {
                let half = rows_and(first.width() / 2);
                assert_eq!(inputs[1], &half, "{name}: gradient of a half of {first}");
            }
            Self::GeluMulSlice { slice } | Self::MulSlice { slice } => {
                let long = &inputs[1].shape;
                let fits = long.rows() == first.rows()
                    && long.width().is_multiple_of(first.width())
                    && slice * first.width() < long.width();
                assert!(fits, "{name}: {first} with slice {slice} of {long}");
            }
            Self::PlaceSlice { slice, slices } => {
                assert!(slice < slices, "{name}: slice {slice} of {slices}");
            }
            Self::Standardise => {
                let row = |i: usize| inputs[i].shape.len() == first.width();
                assert!(row(1) && row(2), "{name}: {first} by {} and {}", inputs[1], inputs[2]);
            }
            Self::AddRow => {
                assert_eq!(
                    inputs[1].shape.len(),
                    first.width(),
                    "{name}: {first} and {}",
                    inputs[1]
                );
            }
            Self::ScaleRow { .. } => {
                let repeated = first.width().is_multiple_of(inputs[1].shape.len());
                assert!(repeated, "{name}: {first} by {}", inputs[1]);
            }
            Self::Scale { .. }
            | Self::Gelu
            | Self::Silu
            | Self::Softcap { .. }
            | Self::Clamp { .. } => {}
        }
        match self.width_from(first.width()) {
            same if same == first.width() => vec![Type::f32(first.clone())],
            other => vec![rows_and(other)],
        }
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        cpu::forward(self, call);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn stores(&self, _: &GpuCall<'_>, _: usize, preferred: Edge) -> Edge {
        match preferred {
            Edge::F16Columns(_) => preferred,
            _ => Edge::RowMajor,
        }
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let Some(dy) = dy[0] else { return vec![None; node.inputs.len()] };
        grad::rule(self, graph, node, dy)
    }
}
