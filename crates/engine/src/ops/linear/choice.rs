//! Which kernel makes a product of several columns, by shapes and facts alone. The constants are for a large device; a small one loses little by them.

use crate::{gpu::DeviceFacts, ops::tile::Tile};

/// Columns up to which weights are read by teams, once for all columns.
const MOST_FEW: usize = 8;
/// Lanes of a team that sum by exchange, at most.
const MOST_LANES: usize = 32;
/// Lanes of a workgroup of teams: at least one team, and a multiple of the first number where that is not above the second.
const GROUP: (usize, usize) = (64, 256);
/// Lanes that keep enough loads in flight for a large device. Below, rows are split among more lanes.
const BUSY_LANES: usize = 64 << 10;

/// A kernel and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Up to 8 columns, two rows at a time.
    Few {
        /// Who makes them.
        team: Team,
    },
    /// More columns: tiles.
    Tile(Tile),
}

/// Lanes that share a row: `split` parts of `lanes` lanes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Team {
    /// Lanes that sum by exchange.
    pub(crate) lanes: usize,
    /// How many such parts there are.
    pub(crate) split: usize,
}

impl Choice {
    /// For `columns` columns and a slab of `rows` rows of `row_units` units.
    pub(super) fn new(columns: usize, rows: usize, row_units: usize, facts: &DeviceFacts) -> Self {
        match columns {
            0..=MOST_FEW => {
                Self::Few { team: Team::new(rows.div_ceil(2), row_units, BUSY_LANES, facts) }
            }
            _ => Self::Tile(Tile::new(columns, rows, facts)),
        }
    }

    /// Workgroups for `columns` columns and `rows` rows.
    pub(super) fn groups(self, columns: usize, rows: usize) -> usize {
        match self {
            Self::Few { team } => rows.div_ceil(team.group() / team.size() * 2),
            Self::Tile(tile) => tile.groups(columns, rows),
        }
    }
}

impl Team {
    /// For as many teams as `teams`, which read rows of `row_units` units: as few parts as make `busy` lanes.
    pub(crate) fn new(teams: usize, row_units: usize, busy: usize, facts: &DeviceFacts) -> Self {
        let lanes = lanes(row_units, facts);
        let turns = row_units.div_ceil(lanes).max(1);
        // Parts that take turns evenly, as far as a workgroup goes.
        let even = |split: &usize| turns.is_multiple_of(*split) && split * lanes <= GROUP.1;
        let mut splits = (1..=turns).filter(even);
        let most = splits.clone().next_back().unwrap_or(1);
        let split = splits.find(|split| teams * lanes * split >= busy).unwrap_or(most);
        Self { lanes, split }
    }

    /// Lanes of the team.
    pub(crate) fn size(self) -> usize {
        self.lanes * self.split
    }

    /// Lanes of a workgroup: whole teams.
    pub(crate) fn group(self) -> usize {
        let most = GROUP.1 / self.size();
        let round = |teams: &usize| (teams * self.size()).is_multiple_of(GROUP.0);
        (1..=most).find(round).unwrap_or(most) * self.size()
    }

    /// Lanes of the largest workgroup that has no more than `lanes`.
    pub(crate) fn most(self, lanes: usize) -> usize {
        let most = (lanes / self.size()).max(1);
        let round = |teams: &usize| (teams * self.size()).is_multiple_of(GROUP.0);
        (1..=most).rev().find(round).unwrap_or(most) * self.size()
    }
}

/// Lanes that sum by exchange: a subgroup has that many, and not much more than an eighth of them idle at the end of a row.
fn lanes(row_units: usize, facts: &DeviceFacts) -> usize {
    let widest = facts.subgroups.map_or(MOST_LANES, |(least, _)| MOST_LANES.min(least as usize));
    let mut lanes = widest.min(row_units.next_power_of_two());
    // 48 units keep 16 lanes busy three times, but 32 lanes only one and a half times.
    while lanes > 8 && row_units.next_multiple_of(lanes) * 7 > row_units * 8 {
        lanes /= 2;
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::{Choice, DeviceFacts, Team, Tile};

    #[test]
    fn kernels_follow_shapes_and_devices() {
        let wide = |n| DeviceFacts { subgroups: Some((n, n)), ..DeviceFacts::floor() };
        let (wide8, wide32) = (wide(8), wide(32));
        let few = |lanes, split| Choice::Few { team: Team { lanes, split } };
        let tile = |columns| Choice::Tile(Tile::Plain { columns });
        for (columns, rows, units, facts, choice, groups) in [
            (2, 257, 48, &wide32, few(16, 3), 33),
            (8, 12_288, 48, &wide32, few(16, 1), 1536),
            (8, 257, 48, &wide8, few(8, 6), 33),
            (9, 257, 48, &wide32, tile(16), 5),
            (512, 12_288, 48, &wide32, tile(64), 1536),
        ] {
            let made = Choice::new(columns, rows, units, facts);
            assert_eq!(made, choice, "{columns} columns, {rows} rows of {units} units");
            assert_eq!(made.groups(columns, rows), groups, "{columns} columns, {rows} rows");
        }
    }

    #[test]
    fn workgroups_hold_whole_teams() {
        for (lanes, split, group) in
            [(16, 1, 64), (16, 3, 192), (32, 6, 192), (1, 1, 64), (4, 11, 220), (32, 8, 256)]
        {
            assert_eq!(Team { lanes, split }.group(), group, "{lanes} lanes, {split} parts");
        }
    }
}
