//! One workgroup per id and slab; the slab that holds the row writes it.

use bytemuck::NoUninit;

use super::Embed;
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    ops::{
        parts::{WEIGHTS, quant},
        slab::{SLAB, SlabParams},
    },
};

static FORWARD: Kernel = Kernel { name: "embed/forward", source: include_str!("forward.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    slab: SlabParams,
    scale: f32,
}

pub(super) fn forward(op: &Embed, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (ids, slabs) = (call.input(0).shape.len(), call.slabs(1));
    (0..slabs.rows.len())
        .map(|slab| {
            let params = Params {
                slab: SlabParams::new(&slabs, slab, &call.input(1).shape, ids),
                scale: op.scale,
            };
            Dispatch::new(&FORWARD)
                .part(SLAB)
                .part(WEIGHTS)
                .part(quant(slabs.dtype))
                .params(&params)
                .read(BufferRef::Slab(1, slab))
                .read(BufferRef::Input(0))
                .write(BufferRef::Output(0))
                .grid_over(ids)
        })
        .collect()
}
