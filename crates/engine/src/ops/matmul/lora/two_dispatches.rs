//! A LoRA pair in two dispatches: the down-projection, then the linear layer with the up-projection.

use super::down::DownProjection;
use crate::{
    graph::{Graph, Value},
    ops::matmul::op::{FusedLinear, LoraForm, Prologue, RowSelect},
};

/// Bindings of a down-projection after residual add and norms.
const RESIDUAL_BINDINGS: usize = 8;

/// `A x` in a dispatch of its own before the others. That dispatch also stores what the
/// prologue computes, where a kernel may bind that many buffers, so that the others need not compute it again.
pub(in crate::ops::matmul) fn two_dispatches(
    op: &FusedLinear,
    graph: &mut Graph,
    inputs: &[Value],
    most_bindings: usize,
) -> Vec<Value> {
    let at = op.weight_input();
    let (before, [weight, epilogue_input @ .., a, b]) = inputs.split_at(at) else {
        unreachable!("a linear layer with a LoRA pair has both projections")
    };
    let stores_x = match &op.prologue {
        Prologue::Rows(_) => false,
        Prologue::Norm { .. } => true,
        Prologue::ResidualAdd { branch, next, .. } => {
            next.is_some()
                && most_bindings > RESIDUAL_BINDINGS + usize::from(branch.lora_b.is_some())
        }
    };
    let down = DownProjection { prologue: op.prologue, stores_x };
    let results = graph.apply_all(down, &[before, &[*a]].concat());
    let z = results[results.len() - 1];
    let h1 = matches!(op.prologue, Prologue::ResidualAdd { .. }).then(|| results[0]);
    let prologue = match op.prologue {
        _ if stores_x => Prologue::Rows(results[results.len() - 2]),
        Prologue::ResidualAdd { next: Some(next), eps, .. } => {
            Prologue::Norm { h: results[0], weight: before[next], eps }
        }
        Prologue::ResidualAdd { next: None, .. } => Prologue::Rows(results[0]),
        Prologue::Rows(_) | Prologue::Norm { .. } => op.prologue.with(inputs),
    };
    let mut inputs = prologue.input_values();
    inputs.push(*weight);
    let epilogue_index = inputs.len();
    inputs.extend(epilogue_input);
    inputs.extend([z, *b]);
    let rest = FusedLinear {
        prologue: prologue.indexed(),
        rows: RowSelect::All,
        epilogue: op.epilogue.map(|_| epilogue_index),
        lora: LoraForm::Precomputed,
    };
    let y = graph.apply(rest, &inputs);
    h1.into_iter().chain([y]).collect()
}
