//! GEMM: many tokens times a weight, by tiles. One dispatch per slab, after one that converts x if the tiles take it in another form.

mod clamp;
mod dequantise;
mod prepare;
mod shapes;
mod tile;

pub(super) use clamp::ClampRanges;
pub(super) use shapes::{Tile, TileShape};

use bytemuck::NoUninit;

use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Slabs},
    graph::Shape,
    ops::slab::{SLAB, SlabParams},
};

static GEMM: Kernel = Kernel { name: "matmul/gemm", source: include_str!("gemm.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    slab: SlabParams,
    clamp: ClampRanges,
}

/// A GEMM; other dispatches may have computed its columns.
pub(super) struct Gemm<'a> {
    /// Shape of x.
    pub(super) x: &'a Shape,
    /// Index of the weight input.
    pub(super) weight: usize,
    /// Index of the result.
    pub(super) output: usize,
    /// Clamps of its rows.
    pub(super) clamp: ClampRanges,
}

impl Gemm<'_> {
    /// The dispatch for a slab, with the columns in buffer `columns`.
    pub(super) fn dispatch(
        &self,
        tile: Tile,
        (slabs, slab): (&Slabs, usize),
        columns: BufferRef,
        call: &GpuCall<'_>,
    ) -> Dispatch {
        let weight = &call.input(self.weight).shape;
        let groups = tile.groups(self.x.rows(), slabs.rows[slab].len());
        let slab_params = SlabParams::new(slabs, slab, weight, self.x.rows());
        tile.dispatch_slab(&GEMM, self.x.width(), (slabs.dtype, groups))
            .part(SLAB)
            .part(self.clamp.part())
            .params(&Params { slab: slab_params, clamp: self.clamp })
            .read(BufferRef::Slab(self.weight, slab))
            .read(columns)
            .write(BufferRef::Output(self.output))
            .grid_over(groups)
    }
}
