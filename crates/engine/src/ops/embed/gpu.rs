//! One workgroup per id and slab; the slab that holds the row writes it.

use bytemuck::NoUninit;

use super::Embed;
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Place},
    ops::parts::{WEIGHTS, quant},
};

static FORWARD: Kernel = Kernel { name: "embed/forward", source: include_str!("forward.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    planes: [u32; 4],
    width: u32,
    row_units: u32,
    rows: u32,
    first_row: u32,
    all_rows: u32,
    ids: u32,
    scale: f32,
}

pub(super) fn forward(op: &Embed, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (ids, slabs, weight) = (call.input(0).shape.len(), call.slabs(1), &call.input(1).shape);
    let word = |n: usize| u32::try_from(n).expect("sizes of one weight fit 32 bits");
    (0..slabs.rows.len())
        .map(|slab| {
            let params = Params {
                planes: slabs.planes(slab),
                width: word(weight.width()),
                row_units: word(slabs.row_units()),
                rows: word(slabs.rows[slab].len()),
                first_row: word(slabs.rows[slab].start),
                all_rows: word(weight.rows()),
                ids: word(ids),
                scale: op.scale,
            };
            Dispatch::new(&FORWARD)
                .part(&WEIGHTS)
                .part(quant(slabs.dtype))
                .params(&params)
                .read(Place::Slab(1, slab))
                .read(Place::Input(0))
                .write(Place::Output(0))
                .grid_over(ids)
        })
        .collect()
}
