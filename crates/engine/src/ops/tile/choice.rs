//! Which tiles, by shapes and facts alone. The constants were measured on one large device.

use crate::{
    gpu::{DeviceFacts, MatrixUnits, Part},
    ops::parts,
};

/// Rows of a plain tile, and columns it may have, best first.
const PLAIN_ROWS: usize = 64;
const PLAIN_COLUMNS: [usize; 3] = [64, 32, 16];
/// Workgroups of plain tiles that keep a large device busy; below, tiles have fewer columns.
const BUSY_PLAIN: usize = 256;
/// The same for matrix units, whose large tiles are worth more.
const BUSY_MATRIX: usize = 96;

/// What makes a tile, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tile {
    /// Plain arithmetic.
    Plain {
        /// Columns.
        columns: usize,
    },
    /// Matrix units.
    Matrix(Cut),
}

/// A size that matrix units have a part for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// 128 rows by 128 columns.
    Large,
    /// 64 rows by 64 columns.
    Medium,
    /// 64 rows by 32 columns.
    Narrow,
    /// 64 rows by 16 columns.
    Slim,
}

impl Tile {
    /// For `columns` columns and `rows` rows: the largest tile that is more than half full and makes enough workgroups.
    pub(crate) fn new(columns: usize, rows: usize, facts: &DeviceFacts) -> Self {
        Self::find(facts, |tile| {
            let busy = if matches!(tile, Self::Plain { .. }) { BUSY_PLAIN } else { BUSY_MATRIX };
            columns > tile.columns() / 2 && tile.groups(columns, rows) >= busy
        })
    }

    /// For `slots` columns in `groups` groups that no tile crosses: the widest tile that an even share of them fills by half.
    pub(crate) fn for_groups(slots: usize, groups: usize, facts: &DeviceFacts) -> Self {
        Self::find(facts, |tile| {
            // Plain tiles of 64 leave no room for the numbers of slots on the least devices.
            let fits = tile.rows() == PLAIN_ROWS && *tile != Self::Plain { columns: 64 };
            fits && slots * 2 >= groups * tile.columns()
        })
    }

    /// The first tile that is good, the best first, or else the smallest.
    fn find(facts: &DeviceFacts, good: impl Fn(&Self) -> bool) -> Self {
        let plain = PLAIN_COLUMNS.map(|columns| Self::Plain { columns });
        let matrix = [Cut::Large, Cut::Medium, Cut::Narrow, Cut::Slim];
        let fits = |cut: &Cut| cut.bytes() <= facts.workgroup_bytes as usize;
        let tiles: Vec<Self> = match facts.matrix {
            Some(MatrixUnits::Wgpu16) => {
                matrix.into_iter().filter(fits).map(Self::Matrix).collect()
            }
            Some(MatrixUnits::Written) | None => plain.into(),
        };
        let least = *tiles.last().expect("the slimmest tile fits every device with matrix units");
        tiles.into_iter().find(good).unwrap_or(least)
    }

    /// Rows of a tile.
    pub(crate) fn rows(self) -> usize {
        match self {
            Self::Plain { .. } => PLAIN_ROWS,
            Self::Matrix(cut) => cut.size().0,
        }
    }

    /// Columns of a tile.
    pub(crate) fn columns(self) -> usize {
        match self {
            Self::Plain { columns } => columns,
            Self::Matrix(cut) => cut.size().1,
        }
    }

    /// Workgroups for `columns` columns and `rows` rows.
    pub(crate) fn groups(self, columns: usize, rows: usize) -> usize {
        rows.div_ceil(self.rows()) * columns.div_ceil(self.columns())
    }
}

impl Cut {
    /// Rows and columns.
    fn size(self) -> (usize, usize) {
        match self {
            Self::Large => (128, 128),
            Self::Medium => (64, 64),
            Self::Narrow => (64, 32),
            Self::Slim => (64, 16),
        }
    }

    /// Workgroup memory it takes, with room for what a kernel adds: 144 bytes for each row and column, a block of sums for each
    /// 16 rows.
    fn bytes(self) -> usize {
        let (rows, columns) = self.size();
        (rows + columns) * 144 + rows * 64 + 1024
    }

    /// The part with its sizes.
    pub(super) fn part(self) -> &'static Part {
        match self {
            Self::Large => parts::cut_128x128(),
            Self::Medium => parts::cut_64x64(),
            Self::Narrow => parts::cut_64x32(),
            Self::Slim => parts::cut_64x16(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cut, DeviceFacts, MatrixUnits, Tile};

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
        let plain = |columns| Tile::Plain { columns };
        for (columns, rows, facts, tile, groups) in [
            (9, 257, &floor, plain(16), 5),
            (512, 12_288, &floor, plain(64), 1536),
            (512, 2048, &floor, plain(64), 256),
            (64, 2048, &floor, plain(16), 128),
            (33, 262_144, &floor, plain(64), 4096),
            (32, 262_144, &floor, plain(32), 4096),
            (16, 262_144, &floor, plain(16), 4096),
            (4096, 257, &floor, plain(64), 320),
            (512, 12_288, &large, Tile::Matrix(Cut::Large), 384),
            (512, 12_288, &small, Tile::Matrix(Cut::Medium), 1536),
            (512, 1536, &large, Tile::Matrix(Cut::Medium), 192),
            (512, 512, &large, Tile::Matrix(Cut::Narrow), 128),
            (64, 12_288, &large, Tile::Matrix(Cut::Medium), 192),
            (64, 1536, &large, Tile::Matrix(Cut::Slim), 96),
            (16, 12_288, &large, Tile::Matrix(Cut::Slim), 192),
            (9, 5, &large, Tile::Matrix(Cut::Slim), 1),
        ] {
            let made = Tile::new(columns, rows, facts);
            assert_eq!(made, tile, "{columns} columns, {rows} rows");
            assert_eq!(made.groups(columns, rows), groups, "{columns} columns, {rows} rows");
        }
    }

    #[test]
    fn tiles_are_as_wide_as_groups_are_busy() {
        let (floor, large) = (DeviceFacts::floor(), matrix(48 << 10));
        let plain = |columns| Tile::Plain { columns };
        for (slots, groups, facts, tile) in [
            (256, 128, &floor, plain(16)),
            (4096, 128, &floor, plain(32)),
            (70, 2, &floor, plain(32)),
            (512, 128, &large, Tile::Matrix(Cut::Slim)),
            (2048, 128, &large, Tile::Matrix(Cut::Narrow)),
            (4096, 128, &large, Tile::Matrix(Cut::Medium)),
        ] {
            assert_eq!(Tile::for_groups(slots, groups, facts), tile, "{slots} slots");
        }
    }
}
