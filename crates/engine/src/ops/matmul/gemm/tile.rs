//! The parts and constants of GEMM tiles. Linear layers and mixtures of experts use the same tiles.

use rullama_gguf::DType;

use super::{Tile, TileShape};
use crate::{
    gpu::{Dispatch, Kernel, MatrixInt8, MatrixUnits},
    ops::parts::{self, WEIGHTS, quant},
};

impl Tile {
    /// A dispatch of a kernel over tiles, with the tile's parts and constants, for weights of a format in `weights.1` workgroups.
    pub(in crate::ops::matmul) fn dispatch(
        self,
        kernel: &'static Kernel,
        width: usize,
        weights: (DType, usize),
    ) -> Dispatch {
        match self {
            Self::Scalar { columns } => without_units(kernel, width, (weights.0, columns)),
            Self::Matrix(shape, units) => {
                in_units(matrix(kernel, shape, units, weights), weights.0)
                    .part(parts::tile_weights_rows())
            }
            Self::Int8 { units, .. } => int8(kernel, units),
        }
    }

    /// [`Self::dispatch`] with the parts that read a weight's slab: F16 weights are loaded without conversion.
    pub(in crate::ops::matmul) fn dispatch_slab(
        self,
        kernel: &'static Kernel,
        width: usize,
        weights: (DType, usize),
    ) -> Dispatch {
        match self {
            // Split-K tiles take units only.
            Self::Matrix(shape, units) if weights.0 == DType::F16 && !shape.is_split_k() => {
                parts::f16_weights()
                    .into_iter()
                    .fold(matrix(kernel, shape, units, weights), Dispatch::part)
                    .part(parts::tile_weights_rows())
            }
            _ => self.dispatch(kernel, width, weights).part(WEIGHTS).part(quant(weights.0)),
        }
    }

    /// A dispatch of a kernel that reads the weight transposed; only with matrix units.
    pub(in crate::ops::matmul) fn dispatch_transposed(
        self,
        kernel: &'static Kernel,
        weights: (DType, usize),
    ) -> Option<Dispatch> {
        let Self::Matrix(shape, units) = self else { return None };
        Some(
            in_units(matrix(kernel, shape, units, weights), weights.0)
                .part(parts::tile_weights_transposed()),
        )
    }
}

/// Without matrix units. Unquantised weights are loaded as vec4s, for register tiles of up to 8 × 8 outputs per lane; of quantised weights a
/// lane decodes whole units.
fn without_units(
    kernel: &'static Kernel,
    width: usize,
    (dtype, columns): (DType, usize),
) -> Dispatch {
    let dispatch = Dispatch::new(kernel).part(parts::columns(width));
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 => dispatch
            .part(parts::tile_register())
            .part(parts::register_sums())
            .part(parts::tile_shape_register(columns))
            .part(parts::tile_weights_register()),
        _ => dispatch
            .part(parts::tile_scalar())
            .constant("COLUMNS", columns as u32)
            .constant("WG", columns as u32 * 4),
    }
}

/// With int8 matrix units.
fn int8(kernel: &'static Kernel, units: MatrixInt8) -> Dispatch {
    parts::tile_int8(units).into_iter().fold(Dispatch::new(kernel), Dispatch::part)
}

/// With matrix units, without the parts that load weights.
fn matrix(
    kernel: &'static Kernel,
    tile_shape: TileShape,
    units: MatrixUnits,
    (dtype, groups): (DType, usize),
) -> Dispatch {
    let dispatch = Dispatch::new(kernel)
        .part(tile_shape.tile_part())
        .part(parts::matrix(units))
        .part(tile_shape.part(dtype, groups))
        .part(parts::columns_f16());
    match tile_shape.is_split_k() {
        true => dispatch.part(parts::matrix_x(units)),
        false => dispatch,
    }
}

/// Adds the parts that load weights in units of their format.
fn in_units(dispatch: Dispatch, dtype: DType) -> Dispatch {
    dispatch.part(parts::stage_weights(dtype)).part(parts::STAGE_UNITS)
}
