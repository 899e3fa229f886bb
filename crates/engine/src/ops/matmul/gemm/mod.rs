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

/// Buffers of a GEMM's dispatch.
struct Buffers {
    weights: BufferRef,
    columns: BufferRef,
    /// The results, or the sums of each split-K chunk.
    sums: BufferRef,
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
        let buffers = Buffers {
            weights: BufferRef::Slab(self.weight, slab),
            columns,
            sums: BufferRef::Output(self.output),
        };
        self.multiply((tile, 1), (slabs, slab, &call.input(self.weight).shape), buffers)
    }

    /// The same, by split-K chunks, with these buffers, for a weight of this shape.
    fn multiply(
        &self,
        (tile, chunks): (Tile, usize),
        (slabs, slab, weight): (&Slabs, usize, &Shape),
        Buffers { weights, columns, sums }: Buffers,
    ) -> Dispatch {
        let groups = tile.groups(self.x.rows(), slabs.rows[slab].len());
        let slab_params = SlabParams::new(slabs, slab, weight, self.x.rows());
        let dispatch = tile
            .dispatch_slab(&GEMM, self.x.width(), (slabs.dtype, groups))
            .part(SLAB)
            .part(self.clamp.part())
            .params(&Params { slab: slab_params, clamp: self.clamp })
            .read(weights)
            .read(columns)
            .write(sums)
            .grid_over(groups * chunks);
        if chunks > 1 { dispatch.constant("CHUNKS", chunks as u32) } else { dispatch }
    }
}
