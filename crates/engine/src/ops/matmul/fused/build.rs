//! Graph methods for fused linear layers.

use crate::{
    graph::{Graph, Value},
    ops::{
        Routes,
        matmul::op::{
            Epilogue, ExpertRows, FoldedDown, FusedLinear, LoraForm, Prologue, RowSelect,
        },
    },
};

/// The LoRA pair of a weight `[r, k]`: `B (A x)` is added to the linear layer's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoraPair {
    /// The down-projection `A`, a weight `[rank, k]`.
    pub a: Value,
    /// The up-projection `B`, a weight `[r, rank]`, multiplied by the adapter's scale.
    pub b: Value,
    /// Its first row among the rows folded into the preceding dispatch, if several down-projections were folded.
    pub folded_row: usize,
    /// The sequences of a pass whose rows have different adapters: `a` and `b` then hold the factors of all slots, see [`SlotFactors`](crate::ops::SlotFactors).
    pub sequences: Option<Value>,
}

/// The experts whose weights a linear layer reads.
#[derive(Debug, Clone, Copy)]
pub struct Mixture {
    /// The experts of each token.
    pub routes: Routes,
    /// Weight of each expert, `[t, k]`, if their outputs are summed.
    pub shares: Option<Value>,
}

/// Optional inputs of a fused linear layer.
#[derive(Clone, Copy, Default)]
struct Extras<'a> {
    mixture: Option<&'a Mixture>,
    pair: Option<&'a LoraPair>,
}

impl Graph {
    /// The prologue's activations times the weight `[r, k]`, then the epilogue: `(h1, y)`, where `h1` is the residual stream if the
    /// prologue adds to it.
    pub fn fused_linear(
        &mut self,
        prologue: &Prologue,
        weight: Value,
        epilogue: &Epilogue,
    ) -> (Option<Value>, Value) {
        self.fused_linear_with(prologue, weight, epilogue, Extras::default())
    }

    /// [`Self::fused_linear`] with an optional LoRA pair.
    pub fn fused_linear_lora(
        &mut self,
        prologue: &Prologue,
        weight: Value,
        pair: Option<&LoraPair>,
        epilogue: &Epilogue,
    ) -> (Option<Value>, Value) {
        let extras = Extras { pair, ..Extras::default() };
        self.fused_linear_with(prologue, weight, epilogue, extras)
    }

    /// Rows `[t, k]` times the weight `[r, k]`, followed by their LoRA down-projection: `[t, r + rank]`.
    pub fn linear_with_down(&mut self, x: Value, weight: Value, a: Value) -> Value {
        let op = FusedLinear::plain(RowSelect::All, LoraForm::DownRows);
        self.apply(op, &[x, weight, a])
    }

    /// [`Self::linear_with_down`] with the folded down-projection of the next linear layer: `[t, r + rows of Q + rows of P]`.
    pub fn linear_with_folded_down(
        &mut self,
        x: Value,
        weight: Value,
        folded: &FoldedDown,
    ) -> Value {
        let op = FusedLinear::plain(RowSelect::All, LoraForm::DownRowsFolded);
        self.apply(op, &[x, weight, folded.q, folded.h, folded.p])
    }

    /// The prologue's activations times the weights `[experts, r, k]` of each token's experts, then the epilogue: `[t, k, r]`, or `[t, r]` if
    /// they are summed. `(h1, y)` as for [`Self::fused_linear`].
    pub fn fused_linear_experts(
        &mut self,
        prologue: &Prologue,
        weight: Value,
        mixture: &Mixture,
        epilogue: &Epilogue,
    ) -> (Option<Value>, Value) {
        let extras = Extras { mixture: Some(mixture), ..Extras::default() };
        self.fused_linear_with(prologue, weight, epilogue, extras)
    }

    fn fused_linear_with(
        &mut self,
        prologue: &Prologue,
        weight: Value,
        epilogue: &Epilogue,
        Extras { mixture, pair }: Extras<'_>,
    ) -> (Option<Value>, Value) {
        let mut inputs = prologue.input_values();
        inputs.push(weight);
        let rows = match mixture {
            None => RowSelect::All,
            Some(Mixture { routes, shares }) => {
                let groups =
                    routes.groups.into_iter().flat_map(|(order, offsets)| [order, offsets]);
                inputs.extend(std::iter::once(routes.ids).chain(*shares).chain(groups));
                let (summed, grouped) = (shares.is_some(), routes.groups.is_some());
                RowSelect::Experts(ExpertRows { summed, grouped })
            }
        };
        let epilogue_input = inputs.len();
        inputs.extend(epilogue.input());
        let lora = match (prologue, pair) {
            (_, None) => LoraForm::None,
            (_, Some(LoraPair { sequences: Some(_), .. })) => LoraForm::Slots,
            (Prologue::ResidualAdd { branch, .. }, Some(pair)) if branch.folded > 0 => {
                LoraForm::Folded { first_row: pair.folded_row }
            }
            (_, Some(_)) => LoraForm::Pair,
        };
        inputs.extend(pair.into_iter().flat_map(|pair| [pair.a, pair.b]));
        inputs.extend(pair.and_then(|pair| pair.sequences));
        let op = FusedLinear {
            prologue: prologue.indexed(),
            rows,
            epilogue: epilogue.map(|_| epilogue_input),
            lora,
        };
        match self.apply_all(op, &inputs).as_slice() {
            [h1, y] => (Some(*h1), *y),
            results => (None, results[0]),
        }
    }

    /// `gelu(a) ⊙ b`, where each row of `x` times the weight `[2f, k]` is a row of `a` followed by a row of `b`: `[t, f]`.
    pub fn linear_geglu(&mut self, x: Value, gate_up: Value) -> Value {
        self.fused_linear(&Prologue::Rows(x), gate_up, &Epilogue::GEGLU).1
    }

    /// `gelu(x · weight) ⊙ long[:, slice]`: the gate of the per-layer inputs.
    pub fn linear_gelu_mul(&mut self, x: Value, weight: Value, long: Value, slice: usize) -> Value {
        self.fused_linear(&Prologue::Rows(x), weight, &Epilogue::GeluMul { long, slice }).1
    }
}
