//! Tiles of products with many columns: which form, how large, and what their launches share. Products with one weight and with
//! the weights of experts are made of the same tiles.
//!
//! Matrix units take halves. Weights are rounded to them in workgroup memory, x beforehand, by a launch of its own: each column is
//! divided by a power of two so that no number overflows.

mod choice;

use choice::Cut;
pub(crate) use choice::Tile;

use rullama_gguf::DType;

use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, MatrixUnits, Place, Slabs},
    graph::Shape,
    ops::{
        parts::{self, WEIGHTS, quant},
        slab::{SLAB, SlabParams},
    },
};

static HALVES: Kernel = Kernel { name: "tile/halves", source: include_str!("halves.wgsl") };
/// Lanes of a workgroup that makes halves of a column.
const HALVES_GROUP: u32 = 256;

impl Tile {
    /// A launch of a kernel over tiles: parts and constants of the form, for weights of a format in as many workgroups.
    pub(crate) fn launch(
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
        }
    }

    /// The same with the parts that read a weight's slab: halves are brought as they are.
    pub(crate) fn launch_slab(
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
            _ => self.launch(kernel, width, weights).part(&WEIGHTS).part(quant(weights.0)),
        }
    }

    /// A launch of a kernel whose weights lie the other way round: only by matrix units.
    pub(crate) fn launch_turned(
        self,
        kernel: &'static Kernel,
        weights: (DType, usize),
    ) -> Option<Dispatch> {
        let Self::Matrix(cut, units) = self else { return None };
        Some(in_units(matrix(kernel, cut, units, weights), weights.0).part(parts::across()))
    }

    /// The launch that makes halves of `x` at input 0 in the order it has, and where they lie; the weight at input 1 is not read.
    pub(crate) fn prepare_plain(self, x: &Shape, facts: &DeviceFacts) -> Option<(Dispatch, Place)> {
        let Self::Matrix(..) = self else { return None };
        let place = self.columns_at(x, x.width().div_ceil(32));
        let launch = Dispatch::new(&HALVES)
            .part(&SLAB)
            .part(&WEIGHTS)
            .part(quant(DType::F32))
            .part(parts::columns(x.width()))
            .part(parts::reduce(facts))
            .part(parts::put_halves())
            .constant("WG", HALVES_GROUP)
            .params(&SlabParams::plain(x.width(), x.rows()))
            .read(Place::Slab(1, 0))
            .read(Place::Input(0))
            .write(place)
            .grid_over(x.rows());
        Some((launch, place))
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
        }
    }

    /// The launch that makes halves of `x` at input 0 for the weight at input 1, where the form takes them.
    pub(crate) fn prepare(self, call: &GpuCall<'_>, slabs: &Slabs) -> Option<Dispatch> {
        let (x, weight) = (&call.input(0).shape, &call.input(1).shape);
        matches!(self, Self::Matrix(..)).then(|| {
            Dispatch::new(&HALVES)
                .part(&SLAB)
                .part(&WEIGHTS)
                .part(quant(slabs.dtype))
                .part(parts::columns(x.width()))
                .part(parts::reduce(call.facts))
                .part(parts::put_halves())
                .constant("WG", HALVES_GROUP)
                .params(&SlabParams::new(slabs, 0, weight, x.rows()))
                // Only where its columns belong is asked of the format, nothing is read.
                .read(Place::Slab(1, 0))
                .read(Place::Input(0))
                .write(self.columns_at(x, slabs.row_units()))
                .grid_over(x.rows())
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
