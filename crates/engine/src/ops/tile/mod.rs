//! Tiles of products with many columns: which form, how large, and what their dispatches share. Products with one weight and with
//! the weights of experts are made of the same tiles.
//!
//! Matrix units take halves. Weights are rounded to them in workgroup memory, x beforehand, by a dispatch of its own: each column is
//! divided by a power of two so that no number overflows. Matrix units of bytes take digits, and that dispatch makes them of weights, too.

mod choice;

use choice::Cut;
pub(crate) use choice::Tile;

use rullama_gguf::DType;

use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, MatrixBytes, MatrixUnits, Part, Place, Slabs},
    graph::Shape,
    ops::{
        parts::{self, WEIGHTS, quant},
        slab::{SLAB, SlabParams},
    },
};

static PREPARE: Kernel = Kernel { name: "tile/prepare", source: include_str!("prepare.wgsl") };
/// Lanes of a workgroup that makes a column ready.
const PREPARE_GROUP: u32 = 256;

impl Tile {
    /// A dispatch of a kernel over tiles: parts and constants of the form, for weights of a format in as many workgroups.
    pub(crate) fn dispatch(
        self,
        kernel: &'static Kernel,
        width: usize,
        weights: (DType, usize),
    ) -> Dispatch {
        match self {
            Self::Plain { columns } => plain(kernel, width, (weights.0, columns)),
            Self::Matrix(cut, units) => {
                in_units(matrix(kernel, cut, units, weights), weights.0).part(parts::along())
            }
            Self::Bytes { units, .. } => bytes(kernel, units),
        }
    }

    /// The same with the parts that read a weight's slab: halves are brought as they are.
    pub(crate) fn dispatch_slab(
        self,
        kernel: &'static Kernel,
        width: usize,
        weights: (DType, usize),
    ) -> Dispatch {
        match self {
            Self::Matrix(cut, units) if weights.0 == DType::F16 => parts::kept_as_halves()
                .into_iter()
                .fold(matrix(kernel, cut, units, weights), Dispatch::part)
                .part(parts::along()),
            _ => self.dispatch(kernel, width, weights).part(&WEIGHTS).part(quant(weights.0)),
        }
    }

    /// A dispatch of a kernel whose weights lie the other way round: only by matrix units.
    pub(crate) fn dispatch_turned(
        self,
        kernel: &'static Kernel,
        weights: (DType, usize),
    ) -> Option<Dispatch> {
        let Self::Matrix(cut, units) = self else { return None };
        Some(in_units(matrix(kernel, cut, units, weights), weights.0).part(parts::across()))
    }

    /// The part that puts columns as tiles take them, where they do not take them as they are.
    pub(crate) fn put(self) -> Option<&'static Part> {
        match self {
            Self::Plain { .. } => None,
            Self::Matrix(..) => Some(parts::put_halves()),
            Self::Bytes { .. } => Some(parts::put_digits()),
        }
    }

    /// Workgroups of the dispatch that puts them: one for each of so many columns, and for each row of the weight that is put, too.
    pub(crate) fn puts(self, columns: usize) -> usize {
        match self {
            Self::Plain { .. } | Self::Matrix(..) => columns,
            Self::Bytes { rows, .. } => columns + rows,
        }
    }

    /// The dispatch that makes halves of `x` at input 0 in the order it has, and where they lie; the weight at input 1 is not read.
    pub(crate) fn prepare_plain(self, x: &Shape, facts: &DeviceFacts) -> Option<(Dispatch, Place)> {
        let Self::Matrix(..) = self else { return None };
        let place = self.columns_at(x, x.width().div_ceil(32));
        let dispatch = Dispatch::new(&PREPARE)
            .part(&SLAB)
            .part(&WEIGHTS)
            .part(quant(DType::F32))
            .part(parts::columns(x.width()))
            .part(parts::reduce(facts))
            .part(parts::put_halves())
            .constant("WG", PREPARE_GROUP)
            .params(&SlabParams::plain(x.width(), x.rows()))
            .read(Place::Slab(1, 0))
            .read(Place::Input(0))
            .write(place)
            .grid_over(x.rows());
        Some((dispatch, place))
    }

    /// Where the columns lie that the tiles read, for `x` at input 0 and `row_units` units a column.
    pub(crate) fn columns_at(self, x: &Shape, row_units: usize) -> Place {
        match self {
            Self::Plain { .. } => Place::Input(0),
            Self::Matrix(..) => {
                // Pairs of units of 64 bytes, and 16 bytes for the exponent.
                let bytes = x.rows() * (row_units.next_multiple_of(2) * 64 + 16);
                Place::Scratch(0, bytes as u64)
            }
            Self::Bytes { rows, .. } => {
                // Sixteen by sixteen, two bytes for each number and four for a scale; rows lie in front of the columns.
                let lines = x.rows().next_multiple_of(16) + rows.next_multiple_of(16);
                Place::Scratch(0, (lines * (row_units * 64 + 4)) as u64)
            }
        }
    }

    /// The dispatch that makes `x` at input 0 ready for the weight at input 1, where the form does not take it as it is.
    pub(crate) fn prepare(self, call: &GpuCall<'_>, slabs: &Slabs) -> Option<Dispatch> {
        let (x, weight) = (&call.input(0).shape, &call.input(1).shape);
        self.put().map(|put| {
            Dispatch::new(&PREPARE)
                .part(&SLAB)
                .part(&WEIGHTS)
                .part(quant(slabs.dtype))
                .part(parts::columns(x.width()))
                .part(parts::reduce(call.facts))
                .part(put)
                .constant("WG", PREPARE_GROUP)
                .params(&SlabParams::new(slabs, 0, weight, x.rows()))
                // Where columns belong is asked of the format; weights are read where they are put, too.
                .read(Place::Slab(1, 0))
                .read(Place::Input(0))
                .write(self.columns_at(x, slabs.row_units()))
                .grid_over(self.puts(x.rows()))
        })
    }
}

/// By plain arithmetic. Weights that are kept as numbers are brought by groups of four, for blocks of up to 8 by 8 results a lane; of others
/// a lane takes whole units apart.
fn plain(kernel: &'static Kernel, width: usize, (dtype, columns): (DType, usize)) -> Dispatch {
    let dispatch = Dispatch::new(kernel).part(parts::columns(width));
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 => dispatch
            .part(parts::tile_blocks())
            .part(parts::cut_blocks(columns))
            .part(parts::lie_blocks()),
        _ => dispatch
            .part(parts::tile_plain())
            .constant("COLUMNS", columns as u32)
            .constant("WG", columns as u32 * 4),
    }
}

/// By matrix units of bytes.
fn bytes(kernel: &'static Kernel, units: MatrixBytes) -> Dispatch {
    parts::tile_bytes(units).into_iter().fold(Dispatch::new(kernel), Dispatch::part)
}

/// By matrix units, without what says how weights lie and are brought.
fn matrix(
    kernel: &'static Kernel,
    cut: Cut,
    units: MatrixUnits,
    (dtype, groups): (DType, usize),
) -> Dispatch {
    Dispatch::new(kernel)
        .part(parts::tile_matrix())
        .part(parts::matrix(units))
        .part(cut.part(dtype, groups))
        .part(parts::halves())
}

/// With weights brought in units of their format.
fn in_units(dispatch: Dispatch, dtype: DType) -> Dispatch {
    dispatch.part(parts::bring(dtype)).part(&parts::BROUGHT_UNITS)
}
