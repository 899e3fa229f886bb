//! Quantised hand-off. Packed dot products take x as int8 hi/lo pairs. If another GEMV computes x for one that reads it from global memory, it
//! writes the pairs itself: x is quantised once instead of by every reader, and is half as large.

use super::{
    Gemv, GemvProblem,
    parts::INT8_DOT,
    tiling::{GemvTiling, XForm},
};
use crate::gpu::{Dispatch, Layout, Part};

/// Reads int8 pairs from global memory.
pub(in crate::ops::matmul) static INT8_WORDS: &Part = part!("x_words", "int8_pair");

/// Whether a GEMV can write int8 pairs: its workgroups stage outputs and compute whole halves of units at a time.
pub(in crate::ops::matmul) fn is_possible(gemv: &Gemv<'_>) -> bool {
    gemv.tiling().is_some_and(|(problem, tiling)| has_halves(&problem, &tiling))
}

fn has_halves(problem: &GemvProblem, tiling: &GemvTiling) -> bool {
    let int8 = matches!(tiling.x_form, XForm::Packed | XForm::Pairs);
    let whole = |outputs: usize| outputs.is_multiple_of(Layout::HALF);
    int8 && whole(problem.rows / problem.rows_each) && whole(tiling.outputs(problem))
}

/// Adds the parts with which a producer writes int8 pairs.
pub(super) fn written(tiling: &GemvTiling, layout: Layout, dispatch: Dispatch) -> Dispatch {
    // GeGLU computes an output from two rows.
    let outputs = tiling.lanes / tiling.team.size() * tiling.rows / 2;
    let dispatch = Layout::stored(None, dispatch.part(part!("store", "int8_pair")));
    layout
        .constants(dispatch)
        .constant("OUTPUTS", outputs as u32)
        .constant("OUTPUTS_TWICE", 2 * outputs as u32)
}

/// Adds the parts with which a reader reads them.
pub(super) fn read(row_units: usize, dispatch: Dispatch) -> Dispatch {
    dispatch
        .part(part!("activation", "packed"))
        .part(INT8_DOT)
        .part(INT8_WORDS)
        .constant("PIECES", row_units as u32)
        .constant("GROUPS", 8u32)
}
