//! Branch LoRA: the up-projection `B z` that a prologue adds to the branch before the residual add; `z` is stored after the branch.

use rullama_gguf::DType;

use super::weight_part;
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall},
    ops::matmul::op::Prologue,
};

/// Bindings that a dispatch may have before the branch LoRA's: those for which kernels are tested.
const BINDINGS: std::ops::RangeInclusive<usize> = 7..=9;

/// The up-projection of a branch, unless the branch contains it already.
pub(in crate::ops::matmul) struct BranchLora {
    dtype: DType,
    rank: usize,
    /// vec4s of a row of the transposed `B` in memory.
    pub(in crate::ops::matmul) stride: usize,
    input: usize,
}

impl BranchLora {
    /// `None` if no kernel supports it.
    pub(in crate::ops::matmul) fn new(
        prologue: &Prologue<usize>,
        call: &GpuCall<'_>,
    ) -> Option<Option<Self>> {
        let Prologue::ResidualAdd { branch, .. } = prologue else { return Some(None) };
        let Some(input) = branch.lora_b else { return Some(None) };
        if call.branch_has_lora() {
            return Some(None);
        }
        let (b, rank) = (call.slabs(input), call.input(input).shape.rows());
        let known = matches!(b.dtype, DType::F16 | DType::F32) && b.rows.len() == 1;
        let fits = known && rank.is_multiple_of(4) && call.input(0).shape.rows() == 1;
        fits.then_some(Some(Self { dtype: b.dtype, rank, stride: b.row_blocks / 4, input }))
    }

    /// Adds its parts and binding; `weight_dtype` is the format of the kernel's own LoRA matrices, if it has any.
    pub(in crate::ops::matmul) fn composed(
        &self,
        dispatch: Dispatch,
        weight_dtype: Option<DType>,
    ) -> Option<Dispatch> {
        if !BINDINGS.contains(&dispatch.bindings.len()) {
            return None;
        }
        let dispatch = match weight_dtype {
            None => dispatch.part(weight_part(self.dtype)),
            Some(dtype) if dtype == self.dtype => dispatch,
            Some(_) => return None,
        };
        let dispatch = dispatch
            .part(part!("branch_lora", "added"))
            .constant("BRANCH_RANK", self.rank as u32)
            .read_as("branch_b", BufferRef::Slab(self.input, 0));
        Some(dispatch)
    }

    /// Adds the part for no branch LoRA, if the prologue has a branch.
    pub(in crate::ops::matmul) fn none(prologue: &Prologue<usize>, dispatch: Dispatch) -> Dispatch {
        match prologue {
            Prologue::ResidualAdd { .. } => dispatch.part(part!("branch_lora", "none")),
            Prologue::Rows(_) | Prologue::Norm { .. } => dispatch,
        }
    }
}
