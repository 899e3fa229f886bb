//! A product with a weight, with what comes before and after it where that saves dispatches: norms and the residual sum in front,
//! GELU and GeGLU after it; the factors of an adapter beside it. The weight may be those of experts, and their results may be summed.
//! One token is one dispatch; else it is what it stands for.

/// A part from this folder.
macro_rules! part {
    ($kind:literal, $name:literal) => {{
        static PART: $crate::gpu::Part = $crate::gpu::Part {
            kind: $kind,
            name: concat!($kind, "/", $name),
            source: include_str!(concat!($kind, "/", $name, ".wgsl")),
        };
        &PART
    }};
}

mod build;
pub(crate) mod cases;
mod choice;
mod gpu;
mod handoff;
mod low;
mod of_branch;
mod own;
mod several;
mod taken;
mod thin;

pub use build::{Factors, Finish, Mixture, Start};
pub(crate) use gpu::{takes_parts, vector, wanted_order};
pub(crate) use low::factor;
pub use low::{Ahead, Low, OWN_BYTES};
pub use taken::{Experts, Taken};

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall, Met, Order, SplitKvPartials},
    graph::{Graph, NodeValues, Op, Step, Type, Value},
    ops::{AddNorm, fused, linear_experts::Sizes},
};

/// A product. Inputs: those of its begin, the weight, what tells which of its rows are taken, those of its end, those of what is
/// added. Results: `h1` where the begin makes it, then `y`.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// What makes the rows it takes.
    pub begin: Begin,
    /// Which rows of the weight they meet.
    pub taken: Taken,
    /// What is made of the rows it gives.
    pub end: End,
    /// What is added to those rows before.
    pub low: Low,
}

/// What makes the rows of a product.
#[derive(Debug, Clone, PartialEq)]
pub enum Begin {
    /// `x`
    Plain,
    /// `rms(h) ⊙ next`, of `h` and `next`
    Norm {
        /// Added to the mean, inside the root.
        eps: f32,
    },
    /// The last result of [`AddNorm`], with its inputs; its first, the residual stream, is a result of the product too.
    Added(AddNorm),
}

/// What is made of the rows of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// `y`
    Plain,
    /// `gelu(a) ⊙ b`, where `a` is the first half of a row and `b` the second
    Geglu,
    /// `gelu(y) ⊙ long[:, slice]`, of `long`
    GeluMul {
        /// Which slice, counted in rows of `y`.
        slice: usize,
    },
    /// `cap · tanh(y / cap)`
    Softcap {
        /// What no result is beyond.
        cap: f32,
    },
}

impl Begin {
    /// How many inputs it has.
    fn inputs(&self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Norm { .. } => 2,
            Self::Added(op) => op.inputs(),
        }
    }

    /// What it makes of its inputs: `h1`, where it does, and `x`.
    fn rows(&self, graph: &mut Graph, inputs: &[Value]) -> (Option<Value>, Value) {
        match self {
            Self::Plain => (None, inputs[0]),
            Self::Norm { eps } => (None, graph.rms_norm(inputs[0], Some(inputs[1]), *eps)),
            Self::Added(op) => {
                let made = graph.apply_all(op.clone(), &inputs[..self.inputs()]);
                (Some(made[0]), made[made.len() - 1])
            }
        }
    }
}

impl Product {
    /// Which input the weight is.
    fn weight_input(&self) -> usize {
        self.begin.inputs()
    }

    /// The operations this one stands for.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let at = self.weight_input();
        let (h1, x) = self.begin.rows(graph, inputs);
        let end = at + 1 + self.taken.inputs();
        let (taken, end) = (&inputs[at + 1..end], inputs.get(end));
        let y = match &self.taken {
            Taken::All => graph.linear(x, inputs[at]),
            Taken::Experts(experts) => graph.linear_experts(x, &experts.routes(taken), inputs[at]),
        };
        let y = self.low.added(graph, x, y, inputs);
        let y = match (self.end, end) {
            (End::Geglu, _) => graph.geglu_halves(y),
            (End::GeluMul { slice }, Some(long)) => graph.gelu_mul_slice(y, *long, slice),
            (End::Softcap { cap }, _) => graph.softcap(y, cap),
            (End::Plain | End::GeluMul { .. }, _) => y,
        };
        let y = match self.taken.shares(taken) {
            Some(shares) => graph.experts_combine(y, shares),
            None => y,
        };
        h1.into_iter().chain([y]).collect()
    }
}

impl Op for Product {
    fn name(&self) -> &'static str {
        "product"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        fused::infer(inputs, &|graph, inputs| self.unfused(graph, inputs))
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        fused::cpu(call, &|graph, inputs| self.unfused(graph, inputs));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        if let Some(dispatches) = gpu::vector(self, call) {
            return dispatches;
        }
        let one = call.input(0).shape.rows() == 1;
        match self.low {
            Low::Own | Low::Ahead { .. } if one => {
                let most = call.facts.storage_buffers as usize;
                fused::gpu(call, &|graph, inputs| self.in_two(graph, inputs, most))
            }
            _ => fused::gpu(call, &|graph, inputs| self.unfused(graph, inputs)),
        }
    }

    fn lays(&self, call: &GpuCall<'_>, i: usize, order: Order) -> Option<Order> {
        let summed = matches!(self.taken, Taken::Experts(experts) if experts.summed);
        let gated = self.end == End::Geglu && !summed;
        let low = matches!(self.low, Low::None | Low::Ahead { .. });
        let lays = gated && low && i == gpu::y_of(self) && gpu::made_here(self, call);
        lays.then(|| handoff::laid(self, call, order))
    }

    fn wants_order(&self, call: &GpuCall<'_>) -> Option<Order> {
        let beside = matches!(self.low, Low::Beside | Low::BesideBoth);
        let summed = matches!(self.taken, Taken::Experts(experts) if experts.summed);
        let plain = self.begin == Begin::Plain && self.end == End::Plain;
        let asks = plain && (beside || summed);
        asks.then(|| gpu::wanted_order(call, self.taken, self.low)).flatten()
    }

    fn takes_parts(&self, call: &GpuCall<'_>, parts: SplitKvPartials) -> bool {
        let plain =
            self.begin == Begin::Plain && self.taken == Taken::All && self.end == End::Plain;
        plain && gpu::takes_parts(call, self.low, parts)
    }

    fn met(&self, call: &GpuCall<'_>, parts: SplitKvPartials) -> Option<Met> {
        own::met(self, call, parts)
    }

    fn second_factor(&self) -> Option<usize> {
        match &self.begin {
            Begin::Added(add) => add.low_input(),
            Begin::Plain | Begin::Norm { .. } => None,
        }
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let at = self.weight_input();
        let added = inputs.iter().rev().take(self.low.inputs());
        let weights: usize = added.map(|ty| ty.shape.len()).sum::<usize>() + inputs[at].shape.len();
        match self.taken {
            Taken::All => 2 * inputs[0].shape.rows() as u64 * weights as u64,
            Taken::Experts(_) => Sizes::new(inputs[at], inputs[at + 1]).operations(),
        }
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let at = self.weight_input();
        let all = inputs.iter().map(|ty| ty.bytes()).sum();
        match self.taken {
            Taken::All => all,
            Taken::Experts(_) => {
                Sizes::new(inputs[at], inputs[at + 1]).bytes_read(all, inputs[at], step)
            }
        }
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        fused::grad(graph, node, dy, &|graph, inputs| self.unfused(graph, inputs))
    }
}
