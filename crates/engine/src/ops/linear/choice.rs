//! Which kernel makes a product, by shapes and facts alone.

use crate::gpu::DeviceFacts;

/// Columns up to which weights are read by teams, once for all columns.
const MOST_FEW: usize = 8;
/// Lanes of a workgroup of teams. Small ones spread a short matrix over a large device.
pub(super) const GROUP: usize = 64;
/// Lanes of a team at most.
const MOST_LANES: usize = 32;
/// Rows a team makes at most: each more shares what is read of x, which is several times the bytes of the weights.
const MOST_ROWS: usize = 4;
/// Workgroups that keep a large device busy; below, teams make fewer rows and tiles have fewer columns.
const ENOUGH_GROUPS: usize = 256;
/// Rows of a tile.
pub(super) const TILE_ROWS: usize = 64;
/// Columns a tile may have, largest first.
const TILE_COLUMNS: [usize; 3] = [64, 32, 16];

/// A kernel and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// One column; a team makes several rows.
    Vector {
        /// Lanes of a team.
        lanes: usize,
        /// Rows it makes.
        rows: usize,
    },
    /// 2 to 8 columns; a team makes two rows.
    Few {
        /// Lanes of a team.
        lanes: usize,
    },
    /// More columns: tiles.
    Tile {
        /// Columns of a tile.
        columns: usize,
    },
}

impl Choice {
    /// For `columns` columns and a slab of `rows` rows of `row_units` units.
    pub(super) fn new(columns: usize, rows: usize, row_units: usize, facts: &DeviceFacts) -> Self {
        match columns {
            0 | 1 => {
                let lanes = lanes(row_units, facts);
                let teams = GROUP / lanes;
                let busy = |made: &usize| rows.div_ceil(teams * made) >= ENOUGH_GROUPS;
                let rows = [MOST_ROWS, 2].into_iter().find(busy).unwrap_or(1);
                Self::Vector { lanes, rows }
            }
            2..=MOST_FEW => Self::Few { lanes: lanes(row_units, facts) },
            _ => Self::Tile { columns: tile_columns(columns, rows) },
        }
    }

    /// Workgroups for `columns` columns and `rows` rows.
    pub(super) fn groups(self, columns: usize, rows: usize) -> usize {
        match self {
            Self::Vector { lanes, rows: made } => rows.div_ceil(GROUP / lanes * made),
            Self::Few { lanes } => rows.div_ceil(GROUP / lanes * 2),
            Self::Tile { columns: width } => rows.div_ceil(TILE_ROWS) * columns.div_ceil(width),
        }
    }
}

/// Lanes of a team: as many as fit a subgroup, but no more than leave an eighth of them idle at the end of a row.
fn lanes(row_units: usize, facts: &DeviceFacts) -> usize {
    let widest = facts.subgroups.map_or(MOST_LANES, |(least, _)| MOST_LANES.min(least as usize));
    let mut lanes = widest.min(row_units.next_power_of_two());
    // 48 units keep 16 lanes busy three times, but 32 lanes only one and a half times.
    while lanes > 8 && row_units.next_multiple_of(lanes) * 7 > row_units * 8 {
        lanes /= 2;
    }
    lanes
}

/// The largest tile that leaves no half of it empty and makes enough workgroups.
fn tile_columns(columns: usize, rows: usize) -> usize {
    let groups = |tile: usize| rows.div_ceil(TILE_ROWS) * columns.div_ceil(tile);
    let good = |tile: &usize| columns > tile / 2 && groups(*tile) >= ENOUGH_GROUPS;
    TILE_COLUMNS.into_iter().find(good).unwrap_or(TILE_COLUMNS[2])
}

#[cfg(test)]
mod tests {
    use super::{Choice, DeviceFacts};

    #[test]
    fn kernels_follow_shapes_and_devices() {
        let wide = |n| DeviceFacts { subgroups: Some((n, n)), ..DeviceFacts::floor() };
        let (floor, wide4, wide8, wide32, wide64) =
            (DeviceFacts::floor(), wide(4), wide(8), wide(32), wide(64));
        let vector = |lanes, rows| Choice::Vector { lanes, rows };
        let few = |lanes| Choice::Few { lanes };
        let tile = |columns| Choice::Tile { columns };
        for (columns, rows, units, facts, choice, groups) in [
            // E2B's products, one column: head, up, down, query.
            (1, 262_144, 48, &wide32, vector(16, 4), 16_384),
            (1, 12_288, 48, &wide32, vector(16, 4), 768),
            (1, 1536, 384, &wide32, vector(32, 2), 384),
            (1, 2048, 48, &wide32, vector(16, 2), 256),
            (1, 2048, 48, &floor, vector(16, 2), 256),
            (1, 2048, 64, &wide8, vector(8, 1), 256),
            (1, 2048, 64, &wide4, vector(4, 1), 128),
            (1, 2048, 64, &wide64, vector(32, 4), 256),
            // No more lanes than units.
            (1, 3, 1, &floor, vector(1, 1), 1),
            (1, 3, 3, &wide32, vector(4, 1), 1),
            (2, 257, 48, &wide32, few(16), 33),
            (8, 257, 48, &wide8, few(8), 17),
            (9, 257, 48, &wide32, tile(16), 5),
            (512, 12_288, 48, &wide32, tile(64), 1536),
            (512, 2048, 48, &wide32, tile(64), 256),
            (64, 2048, 48, &wide32, tile(16), 128),
            (33, 262_144, 48, &wide32, tile(64), 4096),
            (32, 262_144, 48, &wide32, tile(32), 4096),
            (16, 262_144, 48, &wide32, tile(16), 4096),
            (4096, 257, 48, &floor, tile(64), 320),
        ] {
            let made = Choice::new(columns, rows, units, facts);
            assert_eq!(made, choice, "{columns} columns, {rows} rows of {units} units");
            assert_eq!(made.groups(columns, rows), groups, "{columns} columns, {rows} rows");
        }
    }
}
