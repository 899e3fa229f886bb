//! Selects the kernel form of a matmul with a weight, by shapes and facts alone:
//!
//! | tokens | condition | form |
//! | --- | --- | --- |
//! | 1 | | GEMV |
//! | 2–8 | weight large enough to pay | batched GEMV (x staged or quantised by a dispatch of its own) |
//! | 2–8 | smaller weight | GEMV, each token by its own workgroups |
//! | 16, 24, … | batch-invariant, weight large enough to pay | batched GEMV by groups of 8 tokens |
//! | > 8 | batch-invariant otherwise | GEMV, each token by its own workgroups |
//! | ≥ 1024 | F16 or BF16 weights, only int8 matrix units | GEMM with int8 matrix units |
//! | 9–32 | f16 matrix units, few tiles of 32 columns | GEMM with matrix units, split-K tiles |
//! | > 8 | f16 matrix units | GEMM with matrix units, five tile shapes |
//! | > 8 | F32, F16 or BF16 weights | GEMM, register tiles |
//! | ≥ 128 | quantised weights | dequantised and x transposed first, then GEMM with k as the outer dimension of both |
//! | > 8 | quantised weights | GEMM, scalar tiles |
//!
//! The constants are tuned for a large device; a small one loses little.

use rullama_gguf::DType;

use super::{gemm::Tile, gemv::MAX_BATCHED};
use crate::{
    gpu::{DeviceFacts, Slabs},
    graph,
};

/// Reading a weight once for several tokens pays if it has this many units for each lane of a busy device: where x is read from where it
/// is, and where one more dispatch stages it.
const BATCH_PAYS: (usize, usize) = (1, 4);

/// Tokens from which dequantising a weight pays.
const DEQUANTISE_PAYS: usize = 128;

/// The kernel form of a matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Each token by separate workgroups.
    Gemv,
    /// Up to 8 tokens: each as by [`Form::Gemv`], to the last bit, with weights read once.
    GemvBatch,
    /// Tiles of many tokens.
    Gemm(Tile),
}

/// What the form depends on, besides the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Tokens: rows of x.
    pub(super) tokens: usize,
    /// Whether each token's results must be bit-identical to those of a graph with that token alone.
    pub(super) batch_invariant: bool,
    /// Rows of the slab.
    pub(super) rows: usize,
    /// Row width.
    pub(super) width: usize,
    /// Units of 32 per row, with the format's padding.
    pub(super) row_units: usize,
    /// Format of the weight.
    pub(super) dtype: DType,
    /// Whether the weight has a single slab.
    pub(super) one_slab: bool,
    /// Whether a batched GEMV needs x staged by a separate dispatch.
    pub(super) staged: bool,
}

impl Form {
    /// The first row of the table that fits.
    pub(super) fn new(shape: &Shape, facts: &DeviceFacts) -> Self {
        match shape.tokens {
            1 => Self::Gemv,
            2.. if shape.is_batchable() && shape.batch_pays(facts) => Self::GemvBatch,
            2..=MAX_BATCHED => Self::Gemv,
            _ if shape.batch_invariant => Self::Gemv,
            _ => Self::Gemm(shape.tile(facts)),
        }
    }
}

impl Shape {
    /// For rows `x` of a graph that is not batch-invariant and a slab of a weight.
    pub(super) fn of_slab(x: &graph::Shape, slabs: &Slabs, slab: usize) -> Self {
        Self {
            tokens: x.rows(),
            batch_invariant: false,
            rows: slabs.rows[slab].len(),
            width: x.width(),
            row_units: slabs.row_units(),
            dtype: slabs.dtype,
            one_slab: slabs.rows.len() == 1,
            staged: false,
        }
    }

    /// The tile of a GEMM, which also computes what GEMV lacks a kernel for.
    pub(super) fn tile(&self, facts: &DeviceFacts) -> Tile {
        // Weights are quantised together with x, all rows at once.
        let int8 = Tile::with_int8_units((self.tokens, self.rows, self.width), self.dtype, facts);
        int8.filter(|_| self.one_slab).unwrap_or_else(|| Tile::new(self.tokens, self.rows, facts))
    }

    /// Whether a GEMM of these tiles dequantises the weight first.
    pub(super) fn is_dequantised(&self, tile: Tile) -> bool {
        let is_quantised = !matches!(self.dtype, DType::F32 | DType::F16 | DType::BF16);
        is_quantised && matches!(tile, Tile::Scalar { .. }) && self.tokens >= DEQUANTISE_PAYS
    }

    /// Whether a batched GEMV has kernels for the tokens: up to 8, or groups of 8 where a GEMM would round differently.
    fn is_batchable(&self) -> bool {
        let groups = self.batch_invariant && self.tokens.is_multiple_of(MAX_BATCHED);
        self.tokens <= MAX_BATCHED || groups
    }

    fn batch_pays(&self, facts: &DeviceFacts) -> bool {
        let each = if self.staged { BATCH_PAYS.1 } else { BATCH_PAYS.0 };
        self.rows * self.row_units >= facts.tuning.busy_lanes as usize * each
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, DeviceFacts, Form, Shape, Tile};
    use crate::{
        gpu::{MatrixInt8, MatrixUnits},
        ops::matmul::gemm::TileShape,
    };

    fn shape(tokens: usize, rows: usize, row_units: usize) -> Shape {
        Shape {
            tokens,
            batch_invariant: false,
            rows,
            width: row_units * 32,
            row_units,
            dtype: DType::Q4_K,
            one_slab: true,
            staged: false,
        }
    }

    fn subgroups(n: u32) -> DeviceFacts {
        DeviceFacts { subgroups: Some((n, n)), ..DeviceFacts::floor() }
    }

    #[test]
    fn each_row_of_the_table() {
        let floor = subgroups(32);
        let matrix = DeviceFacts {
            f16: true,
            matrix: Some(MatrixUnits::Wgpu16),
            workgroup_bytes: 48 << 10,
            ..subgroups(32)
        };
        let int8 = DeviceFacts { matrix_int8: Some(MatrixInt8::Chromium), ..subgroups(32) };
        let invariant = |shape| Shape { batch_invariant: true, ..shape };
        let f16 = |shape| Shape { dtype: DType::F16, ..shape };
        let (large, small) = (shape(4, 24_576, 48), shape(4, 512, 48));
        for (shape, facts, form) in [
            (shape(1, 512, 48), &floor, Form::Gemv),
            (invariant(large), &floor, Form::GemvBatch),
            (invariant(Shape { tokens: 9, ..large }), &floor, Form::Gemv),
            (invariant(Shape { tokens: 16, ..large }), &floor, Form::GemvBatch),
            (invariant(Shape { tokens: 16, ..small }), &floor, Form::Gemv),
            (invariant(small), &floor, Form::Gemv),
            // A dispatch that stages x pays only for larger weights.
            (invariant(Shape { rows: 2048, ..large }), &floor, Form::GemvBatch),
            (invariant(Shape { rows: 2048, staged: true, ..large }), &floor, Form::Gemv),
            (large, &floor, Form::GemvBatch),
            (small, &floor, Form::Gemv),
            (
                f16(shape(2520, 768, 24)),
                &int8,
                Form::Gemm(Tile::Int8 { units: MatrixInt8::Chromium, rows: 768 }),
            ),
            (shape(2520, 768, 24), &int8, Form::Gemm(Tile::Scalar { columns: 64 })),
            (
                shape(512, 12_288, 48),
                &matrix,
                Form::Gemm(Tile::Matrix(TileShape::Large, MatrixUnits::Wgpu16)),
            ),
            (shape(512, 12_288, 48), &floor, Form::Gemm(Tile::Scalar { columns: 64 })),
        ] {
            assert_eq!(Form::new(&shape, facts), form, "{shape:?}");
        }
    }

    #[test]
    fn weights_are_dequantised_for_many_tokens_without_matrix_units() {
        let (scalar, matrix) =
            (Tile::Scalar { columns: 64 }, Tile::Matrix(TileShape::Large, MatrixUnits::Wgpu16));
        let f16 = |shape| Shape { dtype: DType::F16, ..shape };
        for (shape, tile, is_dequantised) in [
            (shape(128, 2048, 48), scalar, true),
            (shape(127, 2048, 48), scalar, false),
            (shape(512, 2048, 48), matrix, false),
            (f16(shape(512, 2048, 48)), scalar, false),
        ] {
            assert_eq!(shape.is_dequantised(tile), is_dequantised, "{shape:?} {tile:?}");
        }
    }

    #[test]
    fn tiles_follow_shapes() {
        let floor = subgroups(32);
        for (tokens, rows, columns, groups) in [(9, 257, 16, 5), (512, 12_288, 64, 1536)] {
            let tile = Tile::Scalar { columns };
            assert_eq!(Form::new(&shape(tokens, rows, 48), &floor), Form::Gemm(tile));
            assert_eq!(tile.groups(tokens, rows), groups, "{tokens} tokens, {rows} rows");
        }
        // Where GEMV lacks a kernel.
        assert_eq!(shape(4, 257, 48).tile(&floor), Tile::Scalar { columns: 16 });
    }
}
