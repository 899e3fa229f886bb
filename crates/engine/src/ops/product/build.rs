//! Products as models write them.

use super::{Ahead, Begin, End, Experts, Low, Product, Taken};
use crate::{
    graph::{Graph, Value},
    ops::{Branch, Routes},
};

/// What a product takes.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// These rows, `[t, k]`.
    Rows(Value),
    /// `rms(h) ⊙ weight`.
    Norm {
        /// The residual stream, `[t, k]`.
        h: Value,
        /// Weight of the norm, `[k]`.
        weight: Value,
        /// Added to the mean, inside the root.
        eps: f32,
    },
    /// `h1 = s · (h + rms(a) ⊙ w)`, and where there is a next norm, `rms(h1) ⊙ next`.
    Branch {
        /// What `h1` is made of.
        branch: Branch,
        /// Weight of the next norm, `[k]`.
        next: Option<Value>,
        /// Added to each mean, inside the root.
        eps: f32,
    },
}

/// What is made of a product `[t, r]`.
#[derive(Debug, Clone, Copy)]
pub enum Finish {
    /// Nothing else.
    Plain,
    /// `gelu(a) ⊙ b` of its halves: `[t, r/2]`.
    Geglu,
    /// `gelu(y) ⊙ long[:, slice]`.
    GeluMul {
        /// Rows of several slices, `[t, l·r]`.
        long: Value,
        /// Which of them.
        slice: usize,
    },
    /// `cap · tanh(y / cap)`.
    Softcap {
        /// What no result is beyond.
        cap: f32,
    },
}

/// The factors of an adapter beside a weight `[r, k]`: what they make, `B (A x)`, is added to the product with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factors {
    /// `A`, a weight `[rank, k]`.
    pub a: Value,
    /// `B`, a weight `[r, rank]`; it holds the adapter's scale.
    pub b: Value,
    /// How many rows of other first factors lie in front, where `A x` was met ahead for several products.
    pub behind: usize,
}

/// Experts whose weights a product takes.
#[derive(Debug, Clone, Copy)]
pub struct Mixture {
    /// Which experts each token goes to.
    pub routes: Routes,
    /// How much each of them counts, `[t, k]`, where their results are summed.
    pub shares: Option<Value>,
}

impl Graph {
    /// The product of what `start` makes with the weight `[r, k]`, finished: `(h1, y)`, where `h1` is the residual stream if
    /// `start` makes a new one.
    pub fn product(
        &mut self,
        start: &Start,
        weight: Value,
        finish: &Finish,
    ) -> (Option<Value>, Value) {
        self.any_product(start, weight, (None, None), finish)
    }

    /// The same with the factors of an adapter, where there are any.
    pub fn product_adapted(
        &mut self,
        start: &Start,
        weight: Value,
        factors: Option<&Factors>,
        finish: &Finish,
    ) -> (Option<Value>, Value) {
        self.any_product(start, weight, (None, factors), finish)
    }

    /// The product of rows `[t, k]` with the weight `[r, k]`, and beside it with the first factor of an adapter: `[t, r + rank]`.
    pub fn product_beside(&mut self, x: Value, weight: Value, a: Value) -> Value {
        let (begin, taken) = (Begin::Plain, Taken::All);
        let op = Product { begin, taken, end: End::Plain, low: Low::Beside };
        self.apply(op, &[x, weight, a])
    }

    /// The same with the first factor of the product that follows, taken apart: `[t, r + rows of Q + rows of P]`.
    pub fn product_ahead(&mut self, x: Value, weight: Value, ahead: &Ahead) -> Value {
        let (begin, taken) = (Begin::Plain, Taken::All);
        let op = Product { begin, taken, end: End::Plain, low: Low::BesideBoth };
        self.apply(op, &[x, weight, ahead.q, ahead.h, ahead.p])
    }

    /// The product of what `start` makes with the weights `[experts, r, k]` of each token's experts, finished: `[t, k, r]`, or
    /// `[t, r]` where they are summed. `(h1, y)` as for [`Self::product`].
    pub fn product_of_experts(
        &mut self,
        start: &Start,
        weight: Value,
        mixture: &Mixture,
        finish: &Finish,
    ) -> (Option<Value>, Value) {
        self.any_product(start, weight, (Some(mixture), None), finish)
    }

    fn any_product(
        &mut self,
        start: &Start,
        weight: Value,
        (mixture, factors): (Option<&Mixture>, Option<&Factors>),
        finish: &Finish,
    ) -> (Option<Value>, Value) {
        let (begin, mut inputs) = match start {
            Start::Rows(x) => (Begin::Plain, vec![*x]),
            Start::Norm { h, weight, eps } => (Begin::Norm { eps: *eps }, vec![*h, *weight]),
            Start::Branch { branch, next, eps } => {
                (Begin::Added(branch.op(next.is_some(), *eps)), branch.inputs(*next))
            }
        };
        inputs.push(weight);
        let taken = match mixture {
            None => Taken::All,
            Some(Mixture { routes, shares }) => {
                let groups =
                    routes.groups.into_iter().flat_map(|(order, offsets)| [order, offsets]);
                inputs.extend(std::iter::once(routes.ids).chain(*shares).chain(groups));
                Taken::Experts(Experts {
                    summed: shares.is_some(),
                    grouped: routes.groups.is_some(),
                })
            }
        };
        let end = match finish {
            Finish::Plain => End::Plain,
            Finish::Geglu => End::Geglu,
            Finish::Softcap { cap } => End::Softcap { cap: *cap },
            Finish::GeluMul { long, slice } => {
                inputs.push(*long);
                End::GeluMul { slice: *slice }
            }
        };
        let low = match (&begin, factors) {
            (_, None) => Low::None,
            (Begin::Added(add), Some(own)) if add.ahead > 0 => Low::Ahead { behind: own.behind },
            (_, Some(_)) => Low::Own,
        };
        inputs.extend(factors.into_iter().flat_map(|factors| [factors.a, factors.b]));
        match self.apply_all(Product { begin, taken, end, low }, &inputs).as_slice() {
            [h1, y] => (Some(*h1), *y),
            results => (None, results[0]),
        }
    }

    /// `gelu(a) ⊙ b`, where `a` and `b` are the halves of the rows of `x` times the weight `[2f, k]`: `[t, f]`.
    pub fn linear_geglu(&mut self, x: Value, gate_up: Value) -> Value {
        self.product(&Start::Rows(x), gate_up, &Finish::Geglu).1
    }

    /// `gelu(x · weight) ⊙ long[:, slice]`: the gate of a layer's own inputs.
    pub fn linear_gelu_mul(&mut self, x: Value, weight: Value, long: Value, slice: usize) -> Value {
        self.product(&Start::Rows(x), weight, &Finish::GeluMul { long, slice }).1
    }
}
