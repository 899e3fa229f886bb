//! One workgroup per expert, and one for the slots of tokens past the count.

use bytemuck::NoUninit;

use super::ExpertGroups;
use crate::gpu::{BufferRef, Dispatch, GpuCall, Kernel};

static FORWARD: Kernel =
    Kernel { name: "expert_groups/forward", source: include_str!("forward.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    slots: u32,
    chosen: u32,
    experts: u32,
}

pub(super) fn forward(op: &ExpertGroups, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let ids = &call.input(0).shape;
    vec![
        Dispatch::new(&FORWARD)
            .params(&Params {
                slots: ids.len() as u32,
                chosen: ids.width() as u32,
                experts: op.experts as u32,
            })
            .read(BufferRef::Input(0))
            .write(BufferRef::Output(0))
            .write(BufferRef::Output(1))
            .grid(op.experts + 1, 1, 1),
    ]
}
