//! What an adapter adds to the branch in front of a product: `B z`, where `z` lies after the branch.

use rullama_gguf::DType;

use super::{Begin, low::factor};
use crate::{
    gpu::{Dispatch, GpuCall, Place},
    ops::AddNorm,
};

/// What an adapter adds to the branch in front of a product, where it adds something that is not in it already.
pub(super) struct OfBranch {
    dtype: DType,
    rank: usize,
    /// Quads of a row of `B`, turned, in memory.
    pub(super) stride: usize,
    input: usize,
}

impl OfBranch {
    /// `None` if no kernel has it.
    pub(super) fn new(begin: &Begin, call: &GpuCall<'_>) -> Option<Option<Self>> {
        let Begin::Added(AddNorm { low: true, .. }) = begin else { return Some(None) };
        if call.is_branch_whole() {
            return Some(None);
        }
        let input = begin.inputs() - 1;
        let (b, rank) = (call.slabs(input), call.input(input).shape.rows());
        let known = matches!(b.dtype, DType::F16 | DType::F32) && b.rows.len() == 1;
        let fits = known && rank.is_multiple_of(4) && call.input(0).shape.rows() == 1;
        fits.then_some(Some(Self { dtype: b.dtype, rank, stride: b.row_blocks / 4, input }))
    }

    /// With its parts and binding; kernels that have factors besides name their type themselves.
    pub(super) fn composed(&self, dispatch: Dispatch, besides: Option<DType>) -> Option<Dispatch> {
        let spot = match dispatch.bindings.len() {
            7 => part!("branch_spot", "9"),
            8 => part!("branch_spot", "10"),
            9 => part!("branch_spot", "11"),
            _ => return None,
        };
        let dispatch = match besides {
            None => dispatch.part(factor(self.dtype)),
            Some(dtype) if dtype == self.dtype => dispatch,
            Some(_) => return None,
        };
        let dispatch = dispatch.part(part!("branch", "low")).part(spot);
        let dispatch = dispatch.constant("BRANCH_RANK", self.rank as u32);
        Some(dispatch.read(Place::Slab(self.input, 0)))
    }
}
