//! How a product of one column is cut, by shapes and facts alone. What was measured behind the constants is in docs/performance.md.

use crate::{gpu::DeviceFacts, ops::linear::Team};

/// Rows a team makes together where there are many; they share what is read of x, but more of them leave fewer lanes to wait for memory at
/// the same time.
const TEAM_ROWS: usize = 2;
/// The same where pieces are pairs of units: the most that keep a device busy.
const PAIR_ROWS: [usize; 2] = [4, 2];
/// Where teams are split, so many times the lanes of a busy device: each then waits for memory less often.
const SPLIT_TIMES: usize = 2;
/// Of the lanes that keep a device busy, one in this many is enough where every workgroup makes x for itself.
const MAKES_X: usize = 4;
/// One in twice as many, with more rows each, where making it means to combine more than so many KV splits of attention.
const MANY_KV_SPLITS: usize = 5;
/// Lanes of a workgroup whose x lies in its memory, unless it makes a longer one there.
const SHARED_LANES: usize = 256;
/// Groups of four numbers that a lane makes of x, at most, where there may be more lanes; one where an adapter adds to each of them, so that
/// fewer workgroups read what it adds.
const QUADS_EACH: usize = 2;
/// A workgroup has a multiple of so many: whole subgroups.
const LANES_STEP: usize = 64;
/// As many where there are turns for all of them; it makes the compiler leave room for more lanes.
const MANY_LANES: usize = 1024;
/// The same where pieces are pairs of units, which take more registers than so many lanes would leave.
const MANY_PAIR_LANES: usize = 512;
/// Workgroups whose x lies in their memory have at most this many times the lanes of a busy device; then they take turns.
const SHARED_TIMES: usize = 2;

/// How the rows of a slab are dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Who makes rows.
    pub(super) team: Team,
    /// How many at a time.
    pub(super) rows: usize,
    /// Lanes of a workgroup.
    pub(super) lanes: usize,
    /// Where x lies.
    pub(super) column: Column,
    /// Turns of workgroups that make all rows.
    pub(super) turns: usize,
    /// Workgroups that take them.
    pub(super) groups: usize,
}

/// Where x lies while rows are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Where it is; every team reads it.
    Direct,
    /// In workgroup memory, as floats.
    Floats,
    /// In workgroup memory, as whole numbers, for products of packed bytes.
    Packed,
    /// The same, for two units at a time.
    Pairs,
}

impl Column {
    /// Units in a piece: what a lane takes of a row at a time.
    pub(super) fn piece_units(self) -> usize {
        if self == Self::Pairs { 2 } else { 1 }
    }

    /// Groups of four numbers in a piece.
    pub(super) fn piece_groups(self) -> usize {
        self.piece_units() * 8
    }
}

/// What a product asks of its cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wants {
    /// Rows of the slab.
    pub(super) rows: usize,
    /// Units that are summed for a row.
    pub(super) row_units: usize,
    /// Rows a result is made of.
    pub(super) rows_each: usize,
    /// A turn of a workgroup is to make a multiple of so many results, if it can.
    pub(super) step: usize,
    /// x is made in workgroup memory.
    pub(super) makes_x: bool,
    /// KV splits of attention that are combined for that.
    pub(super) kv_splits: usize,
    /// What an adapter adds to the branch in front is part of that.
    pub(super) adds: bool,
    /// Weights are whole numbers, each in a byte or less.
    pub(super) bytes: bool,
    /// Units have their scales in common, two by two.
    pub(super) pairs: bool,
}

impl Wants {
    /// The lanes nearest to so many, but no fewer if that can be, which make whole steps.
    pub(super) fn whole(&self, team: Team, rows: usize, lanes: usize) -> usize {
        let least = (team.size() * self.step * self.rows_each / rows).max(team.size());
        lanes.next_multiple_of(least)
    }
}

impl Cut {
    /// For a device; `None` if x must lie in workgroup memory and does not fit.
    pub(super) fn new(wants: &Wants, facts: &DeviceFacts) -> Option<Self> {
        let fits = shared_bytes(wants.row_units, SHARED_LANES) <= facts.workgroup_bytes as usize;
        match fits.then(|| Self::many(wants, facts)).flatten() {
            Some(cut) => Some(cut),
            None if wants.makes_x && !fits => None,
            None => Some(Self::few(wants, facts)),
        }
    }

    /// For several tokens side by side: fewer workgroups make x for themselves, and each takes more rows. What a row is summed by stays.
    pub(super) fn of_several(self, wants: &Wants) -> Self {
        let rows = self.rows * 2;
        if !wants.makes_x || self.turns != self.groups || rows > TEAM_ROWS {
            return self;
        }
        let turns = wants.rows.div_ceil(self.lanes / self.team.size() * rows);
        Self { rows, turns, groups: turns, ..self }
    }

    /// Results of a turn.
    pub(super) fn made(&self, wants: &Wants) -> usize {
        self.lanes / self.team.size() * self.rows / wants.rows_each
    }

    /// Workgroup memory it takes.
    pub(super) fn shared_bytes(&self, row_units: usize) -> usize {
        match self.column {
            Column::Direct => self.lanes * 16,
            _ => shared_bytes(row_units, self.lanes),
        }
    }

    /// Many rows: no team need be split, and bringing x to workgroup memory pays. `None` if there are fewer.
    fn many(wants: &Wants, facts: &DeviceFacts) -> Option<Self> {
        let column = match wants.bytes && facts.packed_dot {
            true => Column::Packed,
            false => Column::Floats,
        };
        // Taking pairs makes teams smaller, so it takes more rows.
        let pairs = column == Column::Packed && wants.pairs && wants.row_units.is_multiple_of(2);
        let pairs = PAIR_ROWS.into_iter().filter(|_| pairs);
        let mut pairs = pairs.filter_map(|rows| Self::busy(wants, (Column::Pairs, rows), facts));
        pairs.next().or_else(|| Self::busy(wants, (column, TEAM_ROWS), facts))
    }

    /// Several rows a team, if that keeps the device busy.
    fn busy(wants: &Wants, (column, rows): (Column, usize), facts: &DeviceFacts) -> Option<Self> {
        let team = Team::new(wants.rows, wants.row_units / column.piece_units(), 0, facts);
        if wants.rows / rows * team.size() < facts.busy_lanes as usize {
            return None;
        }
        let most = facts.busy_lanes as usize * SHARED_TIMES;
        let cut = |lanes: usize| {
            let lanes = team.most(lanes);
            let whole = wants.whole(team, rows, lanes);
            let lanes = if fits(wants, whole, facts) { whole } else { lanes };
            let turns = wants.rows.div_ceil(lanes / team.size() * rows);
            // As many turns for each of them, and about as many of them as shall be.
            let wanted = (most / lanes).max(1);
            let each = ((turns + wanted / 2) / wanted).max(1);
            Self { team, rows, lanes, column, turns, groups: turns.div_ceil(each) }
        };
        let many = if column == Column::Pairs { MANY_PAIR_LANES } else { MANY_LANES };
        let wide =
            fits(wants, many, facts).then(|| cut(many)).filter(|cut| cut.turns >= 2 * most / many);
        Some(wide.unwrap_or_else(|| cut(making(wants, facts))))
    }

    /// Few rows: teams are split until the device is busy.
    fn few(wants: &Wants, facts: &DeviceFacts) -> Self {
        let gathers = wants.kv_splits > MANY_KV_SPLITS;
        let busy = match wants.makes_x {
            true => facts.busy_lanes as usize / MAKES_X / if gathers { TEAM_ROWS } else { 1 },
            false => facts.busy_lanes as usize * SPLIT_TIMES,
        };
        // Sharing x pays where so many rows would keep the device busy that teams need not be split.
        let whole = Team::new(wants.rows, wants.row_units, 0, facts).size();
        let many = !wants.makes_x && wants.rows / TEAM_ROWS * whole >= busy;
        let rows = if many || gathers { TEAM_ROWS } else { wants.rows_each };
        let team = Team::new(wants.rows.div_ceil(rows), wants.row_units, busy, facts);
        let (lanes, column) = match wants.makes_x {
            true => (team.most(making(wants, facts)), Column::Floats),
            false => (team.group(), Column::Direct),
        };
        let turns = wants.rows.div_ceil(lanes / team.size() * rows);
        Self { team, rows, lanes, column, turns, groups: turns }
    }
}

/// Lanes of a workgroup that takes a share of the rows after x: enough to make it in one go, or as many as there may be.
fn making(wants: &Wants, facts: &DeviceFacts) -> usize {
    let each = if wants.adds { 1 } else { QUADS_EACH };
    let most = if wants.makes_x { (wants.row_units * 8).div_ceil(each) } else { 0 };
    let steps = SHARED_LANES / LANES_STEP..=most.div_ceil(LANES_STEP);
    let mut steps = steps.rev().map(|steps| steps * LANES_STEP);
    steps.find(|lanes| fits(wants, *lanes, facts)).unwrap_or(SHARED_LANES)
}

/// Whether a workgroup of so many lanes can be, with x in its memory.
fn fits(wants: &Wants, lanes: usize, facts: &DeviceFacts) -> bool {
    lanes <= facts.invocations as usize
        && shared_bytes(wants.row_units, lanes) <= facts.workgroup_bytes as usize
}

/// Workgroup memory for x, what is known of its units, and what teams sum through.
fn shared_bytes(row_units: usize, lanes: usize) -> usize {
    row_units * (8 + 1) * 16 + lanes * (16 + 4)
}

#[cfg(test)]
mod tests {
    use super::{Column, Cut, DeviceFacts, Team, Wants};

    fn large() -> DeviceFacts {
        DeviceFacts {
            invocations: 1024,
            workgroup_bytes: 48 << 10,
            packed_dot: true,
            subgroups: Some((32, 32)),
            ..DeviceFacts::floor()
        }
    }

    /// Of packed bytes; what is to be made of them is up to the test.
    fn wants(rows: usize, row_units: usize) -> Wants {
        Wants {
            rows,
            row_units,
            rows_each: 1,
            step: 1,
            makes_x: true,
            kv_splits: 0,
            adds: false,
            bytes: true,
            pairs: false,
        }
    }

    #[test]
    fn cuts_follow_shapes_and_devices() {
        let wide = |n| DeviceFacts { subgroups: Some((n, n)), ..DeviceFacts::floor() };
        let (floor, wide8, wide32) = (DeviceFacts::floor(), wide(8), wide(32));
        let large = large();
        let (direct, floats, packed) = (Column::Direct, Column::Floats, Column::Packed);
        for (rows, row_units, [rows_each, makes_x], facts, cut) in [
            // E2B's products: head, gate and up, a product like them, down, query.
            (262_144, 48, [1, 0], &large, (16, 1, 2, 1024, packed, 2048, 128)),
            (262_144, 48, [1, 0], &wide32, (16, 1, 2, 256, floats, 8192, 512)),
            (24_576, 48, [2, 1], &large, (16, 1, 2, 256, packed, 768, 384)),
            (12_288, 48, [2, 1], &large, (16, 1, 2, 256, packed, 384, 384)),
            (12_288, 48, [1, 0], &large, (16, 1, 2, 256, packed, 384, 384)),
            (6144, 48, [1, 0], &large, (16, 3, 1, 192, direct, 1536, 1536)),
            (1536, 384, [1, 0], &large, (32, 3, 1, 192, direct, 768, 768)),
            (2048, 48, [1, 0], &large, (16, 3, 1, 192, direct, 512, 512)),
            (2048, 64, [1, 0], &wide8, (8, 8, 1, 64, direct, 2048, 2048)),
            // After norms: query, key and value; the gate of a layer's own inputs.
            (2560, 48, [1, 1], &large, (16, 1, 1, 256, floats, 160, 160)),
            (256, 48, [1, 1], &large, (16, 3, 1, 192, floats, 64, 64)),
            (2560, 48, [1, 1], &floor, (16, 1, 1, 256, floats, 160, 160)),
            // The same of 26B-A4B, whose rows are longer.
            (8192, 88, [1, 1], &large, (32, 1, 2, 384, packed, 342, 342)),
            // Where an adapter adds to the branch in front: the gate of a layer's own inputs; gate and up.
            (256, 48, [1, 2], &large, (16, 3, 1, 384, floats, 32, 32)),
            (24_576, 48, [2, 2], &large, (16, 1, 2, 384, packed, 512, 256)),
            // Wider than the memory of a workgroup.
            (262_144, 160, [1, 0], &wide32, (32, 1, 2, 64, direct, 65_536, 65_536)),
            // No more lanes than units.
            (3, 1, [1, 0], &floor, (1, 1, 1, 64, direct, 1, 1)),
        ] {
            let wants = Wants {
                rows_each,
                makes_x: makes_x > 0,
                adds: makes_x == 2,
                ..wants(rows, row_units)
            };
            let (lanes, split, rows, group, column, turns, groups) = cut;
            let team = Team { lanes, split };
            let wanted = Cut { team, rows, lanes: group, column, turns, groups };
            assert_eq!(Cut::new(&wants, facts), Some(wanted), "{wants:?}");
        }
    }

    #[test]
    fn pairs_are_taken_where_rows_are_many() {
        let large = large();
        let small = DeviceFacts { invocations: 256, ..large.clone() };
        for (rows, row_units, facts, wanted) in [
            // Lanes of a team, rows, lanes of a workgroup, column, workgroups.
            (262_144, 48, &large, (8, 4, 512, Column::Pairs, 256)),
            (262_144, 48, &small, (8, 4, 256, Column::Pairs, 512)),
            (262_144, 88, &large, (16, 4, 512, Column::Pairs, 256)),
            (12_288, 48, &large, (16, 2, 256, Column::Packed, 384)),
            // Gate and up of E2B's wider layers and of E4B: fewer rows at a time.
            (24_576, 48, &large, (8, 2, 256, Column::Pairs, 384)),
            (20_480, 80, &large, (8, 2, 320, Column::Pairs, 256)),
        ] {
            let wants = Wants { makes_x: rows < 100_000, pairs: true, ..wants(rows, row_units) };
            let made = Cut::new(&wants, facts)
                .map(|cut| (cut.team.size(), cut.rows, cut.lanes, cut.column, cut.groups));
            assert_eq!(made, Some(wanted), "{wants:?}");
        }
    }

    #[test]
    fn turns_make_whole_steps_where_lanes_allow() {
        let large = large();
        let small = DeviceFacts { invocations: 320, ..large.clone() };
        for (rows, row_units, facts, lanes, made) in [
            // Gate and up of E2B's layers, of E4B, and of E4B where there can be no more lanes.
            (24_576, 48, &large, 256, 32),
            (12_288, 48, &large, 256, 16),
            (20_480, 80, &large, 384, 48),
            (20_480, 80, &small, 320, 40),
        ] {
            let wants = Wants { rows_each: 2, step: 16, pairs: true, ..wants(rows, row_units) };
            let cut = Cut::new(&wants, facts).map(|cut| (cut.lanes, cut.made(&wants)));
            assert_eq!(cut, Some((lanes, made)), "{wants:?}");
        }
    }

    #[test]
    fn a_row_that_is_made_must_fit() {
        assert_eq!(Cut::new(&wants(8, 160), &DeviceFacts::floor()), None);
    }

    #[test]
    fn fewer_workgroups_combine_many_kv_splits() {
        for (kv_splits, wanted) in [(5, (32, 1, 192)), (6, (32, 2, 96))] {
            let wants = Wants { kv_splits, ..wants(1536, 64) };
            let made =
                Cut::new(&wants, &large()).map(|cut| (cut.team.size(), cut.rows, cut.groups));
            assert_eq!(made, Some(wanted), "{wants:?}");
        }
    }
}
