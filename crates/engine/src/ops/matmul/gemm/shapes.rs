//! Selects the GEMM tile by shapes and facts alone. The constants were tuned on one large device.

use rullama_gguf::DType;

use crate::{
    gpu::{DeviceFacts, MatrixInt8, MatrixUnits, Part},
    ops::parts::{self, is_packed},
};

/// Rows of a tile without matrix units, and its possible columns, best first.
const SCALAR_ROWS: usize = 64;
const SCALAR_COLUMNS: [usize; 3] = [64, 32, 16];
/// Workgroups of scalar tiles that keep a large device busy; with fewer, tiles have fewer columns.
const BUSY_SCALAR: usize = 256;
/// Workgroups of matrix-unit tiles that keep a large device busy: their large tiles are worth more.
const BUSY_MATRIX: usize = 96;

/// Workgroups of large tiles from which two resident workgroups per multiprocessor are worth more than longer slices of K. Unpacked weights
/// are loaded too slowly by half of the lanes.
const MANY_LARGE: usize = 256;

/// Rows of a weight from which split-K tiles of 32 rows keep a large device busy, with up to 16 columns.
const MANY_ROWS: usize = 4096;

/// Rows and columns of a tile with int8 matrix units.
const INT8: (usize, usize) = (128, 64);
/// Columns from which quantising the weights for every matmul pays, and workgroups that keep a large device busy.
const MANY_COLUMNS: usize = 1024;
const BUSY_INT8: usize = 64;

/// The kind of a tile, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::matmul) enum Tile {
    /// No matrix units: register tiles for F32, F16 and BF16 weights, scalar tiles for others.
    Scalar {
        /// Columns.
        columns: usize,
    },
    /// Matrix units.
    Matrix(TileShape, MatrixUnits),
    /// Int8 matrix units, for rows and columns quantised to int8 hi/lo pairs.
    Int8 {
        /// The units' syntax.
        units: MatrixInt8,
        /// Rows of the weight.
        rows: usize,
    },
}

/// A tile shape that matrix units have a part for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::matmul) enum TileShape {
    /// 128 rows by 128 columns.
    Large,
    /// 128 rows by 32 columns.
    Tall,
    /// 64 rows by 64 columns.
    Medium,
    /// 64 rows by 32 columns.
    Narrow,
    /// 64 rows by 16 columns.
    Slim,
    /// 16 or 32 rows by 16 or 32 columns; subgroups split what is summed over.
    SplitK {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
}

impl Tile {
    /// For `columns` columns and `rows` rows of any weight: with matrix units, a split-K tile for up to 32 columns, unless tiles of 32
    /// columns keep the device busy; otherwise the largest tile that is more than half full and gives enough workgroups.
    pub(in crate::ops::matmul) fn new(columns: usize, rows: usize, facts: &DeviceFacts) -> Self {
        let shared = Self::shared(columns, rows, |_| 1, facts);
        let (Some(units), Some(shape)) = (facts.matrix, TileShape::split_k(columns, rows)) else {
            return shared;
        };
        let is_busy = shared.columns() > 16 && shared.groups(columns, rows) >= BUSY_MATRIX;
        let fits = shape.bytes() <= facts.workgroup_bytes as usize;
        if fits && !is_busy { Self::Matrix(shape, units) } else { shared }
    }

    /// An int8 tile for `columns` columns and `rows` rows of F16 or BF16 weights, if the device has int8 matrix units and none for f16.
    pub(in crate::ops::matmul) fn with_int8_units(
        (columns, rows, width): (usize, usize, usize),
        dtype: DType,
        facts: &DeviceFacts,
    ) -> Option<Self> {
        let units = facts.matrix_int8.filter(|_| facts.matrix.is_none())?;
        let tile = Self::Int8 { units, rows };
        let supported = matches!(dtype, DType::F16 | DType::BF16) && width.is_multiple_of(32);
        let many = columns >= MANY_COLUMNS && tile.groups(columns, rows) >= BUSY_INT8;
        (supported && many).then_some(tile)
    }

    /// Like [`Self::new`], where `sharing` returns how many workgroups share a tile for a number of tiles (split-K).
    pub(in crate::ops::matmul) fn shared(
        columns: usize,
        rows: usize,
        sharing: impl Fn(usize) -> usize,
        facts: &DeviceFacts,
    ) -> Self {
        let shapes = [TileShape::Large, TileShape::Medium, TileShape::Narrow, TileShape::Slim];
        Self::find(facts, &shapes, &SCALAR_COLUMNS, |tile| {
            let busy = if matches!(tile, Self::Scalar { .. }) { BUSY_SCALAR } else { BUSY_MATRIX };
            let groups = tile.groups(columns, rows);
            columns > tile.columns() / 2 && groups * sharing(groups) >= busy
        })
    }

    /// For `slots` columns in `groups` groups that no tile crosses: the widest tile that an average group fills by half.
    pub(in crate::ops::matmul) fn for_groups(
        slots: usize,
        groups: usize,
        facts: &DeviceFacts,
    ) -> Self {
        // Scalar tiles of 64 leave no workgroup memory for the slot indices on the floor device.
        Self::find(facts, &[TileShape::Medium, TileShape::Tall], &SCALAR_COLUMNS[1..], |tile| {
            slots * 2 >= groups * tile.columns()
        })
    }

    /// The first good tile, or else the last and smallest.
    fn find(
        facts: &DeviceFacts,
        shapes: &[TileShape],
        scalar_columns: &[usize],
        good: impl Fn(&Self) -> bool,
    ) -> Self {
        let fits = |shape: &&TileShape| shape.bytes() <= facts.workgroup_bytes as usize;
        let tiles: Vec<Self> = match facts.matrix {
            Some(units) => {
                shapes.iter().filter(fits).map(|shape| Self::Matrix(*shape, units)).collect()
            }
            None => {
                scalar_columns.iter().map(|columns| Self::Scalar { columns: *columns }).collect()
            }
        };
        let smallest =
            *tiles.last().expect("the smallest tile fits every device with matrix units");
        tiles.into_iter().find(good).unwrap_or(smallest)
    }

    /// Rows of a tile.
    pub(in crate::ops::matmul) fn rows(self) -> usize {
        match self {
            Self::Scalar { .. } => SCALAR_ROWS,
            Self::Matrix(shape, _) => shape.size().0,
            Self::Int8 { .. } => INT8.0,
        }
    }

    /// Columns of a tile.
    pub(in crate::ops::matmul) fn columns(self) -> usize {
        match self {
            Self::Scalar { columns } => columns,
            Self::Matrix(shape, _) => shape.size().1,
            Self::Int8 { .. } => INT8.1,
        }
    }

    /// Workgroups for `columns` columns and `rows` rows.
    pub(in crate::ops::matmul) fn groups(self, columns: usize, rows: usize) -> usize {
        rows.div_ceil(self.rows()) * columns.div_ceil(self.columns())
    }
}

impl TileShape {
    /// The split-K tile for up to 32 columns: 32 rows share the loads of x if there are enough of them to keep a large device busy.
    fn split_k(columns: usize, rows: usize) -> Option<Self> {
        match columns {
            ..=16 if rows >= MANY_ROWS => Some(Self::SplitK { rows: 32, columns: 16 }),
            ..=16 => Some(Self::SplitK { rows: 16, columns: 16 }),
            17..=32 => Some(Self::SplitK { rows: 16, columns: 32 }),
            _ => None,
        }
    }

    /// Whether subgroups split what is summed over.
    pub(in crate::ops::matmul) fn is_split_k(self) -> bool {
        matches!(self, Self::SplitK { .. })
    }

    /// Rows and columns.
    fn size(self) -> (usize, usize) {
        match self {
            Self::Large => (128, 128),
            Self::Tall => (128, 32),
            Self::Medium => (64, 64),
            Self::Narrow => (64, 32),
            Self::Slim => (64, 16),
            Self::SplitK { rows, columns } => (rows, columns),
        }
    }

    /// Units per row or column in workgroup memory at a time, as in the part.
    fn slice(self) -> usize {
        match self {
            Self::Tall => 1,
            Self::Large | Self::Medium | Self::Narrow | Self::Slim => 2,
            Self::SplitK { rows, .. } => 32 / rows,
        }
    }

    /// Blocks of sums in workgroup memory at a time, as in the part.
    fn sum_blocks(self) -> usize {
        match self {
            Self::Large => 8,
            Self::SplitK { rows: 16, .. } => 2,
            Self::SplitK { .. } | Self::Tall | Self::Medium | Self::Narrow | Self::Slim => 1,
        }
    }

    /// Rows and columns in workgroup memory at a time: each subgroup of a split-K tile has its own rows, and columns stay in global memory.
    fn staged(self) -> usize {
        match self {
            Self::SplitK { rows: 16, .. } => 16 * 16,
            Self::SplitK { rows, .. } => 4 * rows,
            Self::Large | Self::Tall | Self::Medium | Self::Narrow | Self::Slim => {
                let (rows, columns) = self.size();
                rows + columns
            }
        }
    }

    /// Workgroup memory in bytes: f16 values of each row and column with 16 bytes of padding, blocks of sums, and a reserve for the kernel.
    fn bytes(self) -> usize {
        self.staged() * (self.slice() * 64 + 16) + self.sum_blocks() * 1024 + 1024
    }

    /// The part that computes a tile of this shape.
    pub(in crate::ops::matmul) fn tile_part(self) -> &'static Part {
        match self {
            Self::SplitK { .. } => parts::tile_matrix_split_k(),
            Self::Large | Self::Tall | Self::Medium | Self::Narrow | Self::Slim => {
                parts::tile_matrix()
            }
        }
    }

    /// The part with its sizes, for weights of a format in `groups` workgroups.
    pub(in crate::ops::matmul) fn part(self, dtype: DType, groups: usize) -> &'static Part {
        match self {
            Self::Large if groups >= MANY_LARGE && is_packed(dtype) => {
                parts::tile_shape_128x128_half()
            }
            Self::Large => parts::tile_shape_128x128(),
            Self::Tall => parts::tile_shape_128x32(),
            Self::Medium => parts::tile_shape_64x64(),
            Self::Narrow => parts::tile_shape_64x32(),
            Self::Slim => parts::tile_shape_64x16(),
            Self::SplitK { rows, columns } => parts::tile_shape_split_k(rows, columns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        DType, DeviceFacts, MatrixInt8, MatrixUnits, Tile,
        TileShape::{self, Large, Medium, Narrow, Slim, Tall},
    };

    fn units(shape: TileShape) -> Tile {
        Tile::Matrix(shape, MatrixUnits::Wgpu16)
    }

    fn matrix(workgroup_bytes: u32) -> DeviceFacts {
        DeviceFacts {
            f16: true,
            subgroups: Some((32, 32)),
            matrix: Some(MatrixUnits::Wgpu16),
            workgroup_bytes,
            ..DeviceFacts::floor()
        }
    }

    #[test]
    fn tiles_follow_shapes_and_devices() {
        let (floor, large, small) = (DeviceFacts::floor(), matrix(48 << 10), matrix(32 << 10));
        let scalar = |columns| Tile::Scalar { columns };
        let split_k = |rows, columns| units(TileShape::SplitK { rows, columns });
        for (columns, rows, facts, tile, groups) in [
            (9, 257, &floor, scalar(16), 5),
            (512, 12_288, &floor, scalar(64), 1536),
            (512, 2048, &floor, scalar(64), 256),
            (64, 2048, &floor, scalar(16), 128),
            (33, 262_144, &floor, scalar(64), 4096),
            (32, 262_144, &floor, scalar(32), 4096),
            (16, 262_144, &floor, scalar(16), 4096),
            (4096, 257, &floor, scalar(64), 320),
            (512, 12_288, &large, units(Large), 384),
            (512, 12_288, &small, units(Medium), 1536),
            (512, 1536, &large, units(Medium), 192),
            (512, 512, &large, units(Narrow), 128),
            (64, 12_288, &large, units(Medium), 192),
            (64, 1536, &large, units(Slim), 96),
            (33, 1536, &large, units(Slim), 72),
            (32, 12_288, &large, units(Narrow), 192),
            (32, 4096, &large, split_k(16, 32), 256),
            (32, 1536, &large, split_k(16, 32), 96),
            (17, 1536, &large, split_k(16, 32), 96),
            (16, 12_288, &large, split_k(32, 16), 384),
            (16, 1536, &large, split_k(16, 16), 96),
            (9, 5, &large, split_k(16, 16), 1),
            (17, 1536, &small, units(Slim), 48),
            (16, 12_288, &small, split_k(32, 16), 384),
        ] {
            let selected = Tile::new(columns, rows, facts);
            assert_eq!(selected, tile, "{columns} columns, {rows} rows");
            assert_eq!(selected.groups(columns, rows), groups, "{columns} columns, {rows} rows");
        }
    }

    #[test]
    fn int8_units_are_for_many_columns_of_float_weights() {
        let subgroups = Some((32, 32));
        let matrix_int8 = Some(MatrixInt8::Chromium);
        let int8 = DeviceFacts { subgroups, matrix_int8, ..DeviceFacts::floor() };
        let f16 = DeviceFacts { matrix_int8, ..matrix(48 << 10) };
        for (shape, dtype, facts, is_used) in [
            ((2520, 768, 768), DType::F16, &int8, true),
            ((1024, 512, 32), DType::BF16, &int8, true),
            // More precise than int8 pairs, or quantised.
            ((2520, 768, 768), DType::F32, &int8, false),
            ((2520, 768, 768), DType::Q4_K, &int8, false),
            // Too few columns or tiles, or a width that is not a multiple of a unit.
            ((750, 4096, 1024), DType::F16, &int8, false),
            ((1024, 384, 768), DType::F16, &int8, false),
            ((2520, 768, 1100), DType::F16, &int8, false),
            ((2520, 768, 768), DType::F16, &f16, false),
            ((2520, 768, 768), DType::F16, &DeviceFacts::floor(), false),
        ] {
            let (units, rows) = (MatrixInt8::Chromium, shape.1);
            let tile = is_used.then_some(Tile::Int8 { units, rows });
            assert_eq!(Tile::with_int8_units(shape, dtype, facts), tile, "{shape:?} {dtype:?}");
        }
    }

    #[test]
    fn tiles_for_groups_are_half_full_on_average() {
        let (floor, large) = (DeviceFacts::floor(), matrix(32 << 10));
        let scalar = |columns| Tile::Scalar { columns };
        for (slots, groups, facts, tile) in [
            (256, 128, &floor, scalar(16)),
            (4096, 128, &floor, scalar(32)),
            (70, 2, &floor, scalar(32)),
            (512, 128, &large, units(Tall)),
            (2048, 128, &large, units(Tall)),
            (4096, 128, &large, units(Medium)),
        ] {
            assert_eq!(Tile::for_groups(slots, groups, facts), tile, "{slots} slots");
        }
    }
}
