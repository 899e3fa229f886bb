//! Converts x for GEMM tiles. Matrix units take f16: weights are rounded to it in workgroup memory, x beforehand by a separate dispatch, which
//! divides each column by a power of two so that nothing overflows. Int8 matrix units take int8 hi/lo pairs, and that dispatch quantises
//! the weight too.

use rullama_gguf::DType;

use super::Tile;
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, Edge, F16Columns, GpuCall, Kernel, Slabs},
    graph::Shape,
    ops::{
        parts::{self, WEIGHTS, quant},
        slab::{SLAB, SlabParams},
    },
};

static PREPARE: Kernel = Kernel { name: "matmul/prepare", source: include_str!("prepare.wgsl") };
/// Lanes of the workgroup that converts a column.
const PREPARE_GROUP: u32 = 256;

impl Tile {
    /// Adds the parts that convert columns, or copy them if the tiles take them as f32.
    pub(in crate::ops::matmul) fn with_prepare(self, dispatch: Dispatch) -> Dispatch {
        match self {
            Self::Scalar { .. } => dispatch.part(parts::prepare_x_floats()),
            Self::Matrix(..) => F16Columns::scaled(dispatch.part(parts::prepare_x_f16())),
            Self::Int8 { .. } => dispatch.part(parts::prepare_x_int8()),
        }
    }

    /// Workgroups of the conversion: one per column, and one per row of the weight if it is quantised too.
    pub(in crate::ops::matmul) fn prepared_lines(self, columns: usize) -> usize {
        match self {
            Self::Scalar { .. } | Self::Matrix(..) => columns,
            Self::Int8 { rows, .. } => columns + rows,
        }
    }

    /// The dispatch that converts `x` at input 0 to f16, and the buffer it writes; the weight at input 1 is bound and not read.
    pub(in crate::ops::matmul) fn prepare_plain(
        self,
        x: &Shape,
        facts: &DeviceFacts,
    ) -> Option<(Dispatch, BufferRef)> {
        let Self::Matrix(..) = self else { return None };
        let buffer = self.columns_buffer(x, x.width().div_ceil(32));
        let dispatch = self
            .with_prepare(Dispatch::new(&PREPARE))
            .part(SLAB)
            .part(WEIGHTS)
            .part(quant(DType::F32))
            .part(parts::columns(x.width()))
            .part(parts::reduce(facts))
            .constant("WG", PREPARE_GROUP)
            .params(&SlabParams::plain(x.width(), x.rows()))
            .read(BufferRef::Slab(1, 0))
            .read(BufferRef::Input(0))
            .write(buffer)
            .grid_over(x.rows());
        Some((dispatch, buffer))
    }

    /// The form in which the tiles read `x` at input 0 of a weight with these slabs, if its producer can store it.
    pub(in crate::ops::matmul) fn edge(self, call: &GpuCall<'_>, slabs: &Slabs) -> Edge {
        let Self::Matrix(..) = self else { return Edge::RowMajor };
        F16Columns::new(call.input(0), slabs.dtype, slabs.row_units())
            .map_or(Edge::RowMajor, Edge::F16Columns)
    }

    /// The buffer of the columns that the tiles read, and the dispatch that writes it, unless the producer of `x` has stored them.
    pub(in crate::ops::matmul) fn columns_of(
        self,
        call: &GpuCall<'_>,
        slabs: &Slabs,
    ) -> (BufferRef, Option<Dispatch>) {
        match call.input_edge() {
            Edge::F16Columns(_) => (BufferRef::Input(0), None),
            _ => {
                let buffer = self.columns_buffer(&call.input(0).shape, slabs.row_units());
                (buffer, self.prepare(call, slabs))
            }
        }
    }

    /// The buffer of the columns that the tiles read, for `x` at input 0 and `row_units` units per column.
    pub(in crate::ops::matmul) fn columns_buffer(self, x: &Shape, row_units: usize) -> BufferRef {
        match self {
            Self::Scalar { .. } => BufferRef::Input(0),
            Self::Matrix(..) => BufferRef::Scratch(0, F16Columns::bytes(x.rows(), row_units)),
            Self::Int8 { rows, .. } => {
                // Blocks of 16 × 16, two bytes per element and four per scale; rows of the weight precede the columns.
                let lines = x.rows().next_multiple_of(16) + rows.next_multiple_of(16);
                BufferRef::Scratch(0, (lines * (row_units * 64 + 4)) as u64)
            }
        }
    }

    /// The dispatch that converts `x` at input 0 for the weight at input 1, unless the tiles take it as f32.
    pub(in crate::ops::matmul) fn prepare(
        self,
        call: &GpuCall<'_>,
        slabs: &Slabs,
    ) -> Option<Dispatch> {
        let (x, weight) = (&call.input(0).shape, &call.input(1).shape);
        (!matches!(self, Self::Scalar { .. })).then(|| {
            self.with_prepare(Dispatch::new(&PREPARE))
                .part(SLAB)
                .part(WEIGHTS)
                .part(quant(slabs.dtype))
                .part(parts::columns(x.width()))
                .part(parts::reduce(call.facts))
                .constant("WG", PREPARE_GROUP)
                .params(&SlabParams::new(slabs, 0, weight, x.rows()))
                // The weight's format decides the order within columns; the weight itself is read only if it is quantised, too.
                .read(BufferRef::Slab(1, 0))
                .read(BufferRef::Input(0))
                .write(self.columns_buffer(x, slabs.row_units()))
                .grid_over(self.prepared_lines(x.rows()))
        })
    }
}
