//! The down-projection of adapter slots, from the x that a GEMV reads.

use super::{
    Gemv, GemvSlab,
    tiling::{GemvTiling, XForm},
};
use crate::{
    gpu::{Dispatch, Kernel},
    ops::{
        matmul::lora::{BranchLora, LoraPlan, slots::SlotPlan},
        parts,
    },
};

static DOWN: Kernel = Kernel { name: "matmul/slot_down", source: include_str!("slot_down.wgsl") };

impl GemvSlab<'_> {
    /// The down-projection; `None` if the device lacks bindings.
    pub(in crate::ops::matmul) fn slot_down(&self, slots: &SlotPlan) -> Option<Dispatch> {
        let Gemv { op, call, edges, .. } = self.gemv;
        // Rows of the weight do not matter here: all tilings have the same teams.
        let tiling: &GemvTiling = &self.tiling;
        let teams = tiling.lanes / tiling.team.size();
        let dispatch = slots.down(LoraPlan::none(self.base(&DOWN, tiling)), teams);
        let dispatch = dispatch.params(&self.params());
        let dispatch = match edges.reads_int8() {
            true => dispatch,
            false => dispatch.part(parts::columns(call.input(op.weight_input()).shape.width())),
        };
        let dispatch = match (tiling.x_form, edges.reads_int8()) {
            (XForm::Direct, true) | (XForm::Packed, _) => {
                dispatch.part(part!("slot_x", "packed")).part(part!("slot_int8", "half"))
            }
            (XForm::Pairs, _) => {
                dispatch.part(part!("slot_x", "pairs")).part(part!("slot_int8", "half"))
            }
            (XForm::Direct | XForm::Floats, _) => dispatch.part(part!("slot_x", "floats")),
        };
        let dispatch = self.prologue(tiling, self.activation(tiling, dispatch));
        let dispatch = BranchLora::none(&op.prologue, self.bind(slots.z(), dispatch));
        let dispatch = dispatch.part(match op.epilogue.input() {
            Some(_) => part!("slot_extra", "bound"),
            None => part!("slot_extra", "none"),
        });
        let dispatch = slots.with_a(dispatch);
        (dispatch.bindings.len() <= call.facts.storage_buffers as usize).then_some(dispatch)
    }
}
