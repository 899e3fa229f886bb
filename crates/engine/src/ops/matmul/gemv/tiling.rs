//! Divides the rows of a GEMV among workgroups and lanes, by shapes and facts alone. docs/performance/lab.md has the measurements for the
//! constants; those that a user's GPU may need otherwise are in [`Tuning`](crate::gpu::Tuning).

use super::{GemvProblem, Team};
use crate::gpu::DeviceFacts;

/// Rows per team if there are many; they share the reads of x, but more of them leave fewer lanes with loads in flight.
const TEAM_ROWS: usize = 2;
/// Rows per team if pieces are pairs of units: the largest that keeps a device busy.
const PAIR_ROWS: [usize; 2] = [4, 2];
/// With more KV splits than this in the prologue, half of those lanes, with more rows each.
const MANY_KV_SPLITS: usize = 5;
/// Lanes of a workgroup with x in workgroup memory, unless the prologue computes a longer x there.
const SHARED_LANES: usize = 256;
/// Maximum vec4s of x that a lane computes, if the device allows enough lanes; one if a LoRA up-projection is added to x, so that fewer
/// workgroups read it.
const VEC4S_EACH: usize = 2;
/// Lanes of a workgroup are a multiple of this: whole subgroups.
const LANES_STEP: usize = 64;

/// The division of a slab's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::matmul) struct GemvTiling {
    /// Lanes that compute a row.
    pub(in crate::ops::matmul) team: Team,
    /// Rows of a team at a time.
    pub(in crate::ops::matmul) rows: usize,
    /// Lanes of a workgroup.
    pub(in crate::ops::matmul) lanes: usize,
    /// Where and in which form x is read.
    pub(in crate::ops::matmul) x_form: XForm,
    /// Turns: steps of a workgroup that together cover all rows.
    pub(in crate::ops::matmul) turns: usize,
    /// Workgroups, which loop over the turns.
    pub(in crate::ops::matmul) groups: usize,
}

/// Where and in which form the dot products read x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::matmul) enum XForm {
    /// From global memory, by every team.
    Direct,
    /// In workgroup memory, as floats.
    Floats,
    /// In workgroup memory, as int8 hi/lo pairs, for packed dot products.
    Packed,
    /// Like [`Self::Packed`], two units at a time.
    Pairs,
}

impl XForm {
    /// Units per piece.
    pub(in crate::ops::matmul) fn piece_units(self) -> usize {
        if self == Self::Pairs { 2 } else { 1 }
    }

    /// vec4s per piece.
    pub(in crate::ops::matmul) fn piece_groups(self) -> usize {
        self.piece_units() * 8
    }
}

impl GemvProblem {
    /// The smallest number of lanes from `lanes` on that computes whole steps of outputs.
    pub(in crate::ops::matmul) fn whole(&self, team: Team, rows: usize, lanes: usize) -> usize {
        let least = (team.size() * self.step * self.rows_each / rows).max(team.size());
        lanes.next_multiple_of(least)
    }

    /// Whether several rows of a team share the reads of x in global memory.
    fn is_wide(&self, facts: &DeviceFacts) -> bool {
        let packed = self.packed && facts.packed_dot && !self.computes_x;
        packed && self.row_units >= facts.tuning.wide_units as usize
    }
}

impl GemvTiling {
    /// The tiling for a device; `None` if x must be staged in workgroup memory and does not fit.
    pub(in crate::ops::matmul) fn new(problem: &GemvProblem, facts: &DeviceFacts) -> Option<Self> {
        let fits = shared_bytes(problem.row_units, SHARED_LANES) <= facts.workgroup_bytes as usize;
        match fits.then(|| Self::many(problem, facts)).flatten() {
            Some(tiling) => Some(tiling),
            None if problem.computes_x && !fits => None,
            None if problem.is_wide(facts) => Some(Self::wide(problem, facts)),
            None => Some(Self::few(problem, facts)),
        }
    }

    /// For several tokens: fewer workgroups recompute x, with more rows each. The lanes that sum a row stay the same.
    pub(in crate::ops::matmul) fn of_several_tokens(self, problem: &GemvProblem) -> Self {
        let rows = self.rows * 2;
        if !problem.computes_x || self.turns != self.groups || rows > TEAM_ROWS {
            return self;
        }
        let turns = problem.rows.div_ceil(self.lanes / self.team.size() * rows);
        Self { rows, turns, groups: turns, ..self }
    }

    /// Outputs per turn.
    pub(in crate::ops::matmul) fn outputs(&self, problem: &GemvProblem) -> usize {
        self.lanes / self.team.size() * self.rows / problem.rows_each
    }

    /// Workgroup memory in bytes.
    pub(in crate::ops::matmul) fn shared_bytes(&self, row_units: usize) -> usize {
        match self.x_form {
            XForm::Direct => self.lanes * 16,
            _ => shared_bytes(row_units, self.lanes),
        }
    }

    /// Many rows: no team needs to be split, and staging x in workgroup memory pays. `None` if there are fewer.
    fn many(problem: &GemvProblem, facts: &DeviceFacts) -> Option<Self> {
        let x_form = match problem.packed && facts.packed_dot {
            true => XForm::Packed,
            false => XForm::Floats,
        };
        // Pairs make teams smaller, so they need more rows.
        let pairs =
            x_form == XForm::Packed && problem.paired && problem.row_units.is_multiple_of(2);
        let most = facts.tuning.pair_rows as usize;
        let pairs = PAIR_ROWS.into_iter().filter(|rows| pairs && *rows <= most);
        let mut pairs = pairs.filter_map(|rows| Self::busy(problem, (XForm::Pairs, rows), facts));
        pairs.next().or_else(|| Self::busy(problem, (x_form, TEAM_ROWS), facts))
    }

    /// Several rows per team, if that keeps the device busy.
    fn busy(
        problem: &GemvProblem,
        (x_form, rows): (XForm, usize),
        facts: &DeviceFacts,
    ) -> Option<Self> {
        let team = Team::new(problem.rows, problem.row_units / x_form.piece_units(), 0, facts);
        if problem.rows / rows * team.size() < facts.tuning.busy_lanes as usize {
            return None;
        }
        let most = facts.tuning.busy_lanes as usize * facts.tuning.loop_factor as usize;
        let tiling = |lanes: usize| {
            let lanes = team.most(lanes);
            let whole = problem.whole(team, rows, lanes);
            let lanes = if fits(problem, whole, facts) { whole } else { lanes };
            let turns = problem.rows.div_ceil(lanes / team.size() * rows);
            // Equal numbers of turns per workgroup, and about the wanted number of workgroups.
            let wanted = (most / lanes).max(1);
            let each = ((turns + wanted / 2) / wanted).max(1);
            Self { team, rows, lanes, x_form, turns, groups: turns.div_ceil(each) }
        };
        let many = if x_form == XForm::Pairs {
            facts.tuning.loop_pair_lanes as usize
        } else {
            facts.tuning.loop_lanes as usize
        };
        let wide = fits(problem, many, facts)
            .then(|| tiling(many))
            .filter(|tiling| tiling.turns >= 2 * most / many);
        Some(wide.unwrap_or_else(|| tiling(lanes_for_x(problem, facts))))
    }

    /// Few, wide rows whose x another dispatch has quantised: several rows of a team share the reads of x.
    fn wide(problem: &GemvProblem, facts: &DeviceFacts) -> Self {
        let (rows, busy) = (facts.tuning.wide_rows as usize, facts.tuning.wide_lanes as usize);
        let rows = rows.max(problem.rows_each);
        let team = Team::new(problem.rows.div_ceil(rows), problem.row_units, busy, facts);
        let lanes = team.group();
        let turns = problem.rows.div_ceil(lanes / team.size() * rows);
        Self { team, rows, lanes, x_form: XForm::Direct, turns, groups: turns }
    }

    /// Few rows: teams are split until the device is busy.
    fn few(problem: &GemvProblem, facts: &DeviceFacts) -> Self {
        let many_splits = problem.kv_splits > MANY_KV_SPLITS;
        let busy = match problem.computes_x {
            true => {
                facts.tuning.busy_lanes as usize
                    / facts.tuning.x_divisor as usize
                    / if many_splits { TEAM_ROWS } else { 1 }
            }
            false => facts.tuning.busy_lanes as usize * facts.tuning.split_factor as usize,
        };
        // Sharing x pays if there are enough rows to keep the device busy without splitting teams.
        let whole = Team::new(problem.rows, problem.row_units, 0, facts).size();
        let many = !problem.computes_x && problem.rows / TEAM_ROWS * whole >= busy;
        let rows = if many || many_splits { TEAM_ROWS } else { problem.rows_each };
        let team = Team::new(problem.rows.div_ceil(rows), problem.row_units, busy, facts);
        let (lanes, x_form) = match problem.computes_x {
            true => (team.most(lanes_for_x(problem, facts)), XForm::Floats),
            false => (team.group(), XForm::Direct),
        };
        let turns = problem.rows.div_ceil(lanes / team.size() * rows);
        Self { team, rows, lanes, x_form, turns, groups: turns }
    }
}

/// Lanes of a workgroup that computes x: enough for one step, or as many as the device allows.
fn lanes_for_x(problem: &GemvProblem, facts: &DeviceFacts) -> usize {
    let each = if problem.branch_lora { 1 } else { VEC4S_EACH };
    let most = if problem.computes_x { (problem.row_units * 8).div_ceil(each) } else { 0 };
    let steps = SHARED_LANES / LANES_STEP..=most.div_ceil(LANES_STEP);
    let mut steps = steps.rev().map(|steps| steps * LANES_STEP);
    steps.find(|lanes| fits(problem, *lanes, facts)).unwrap_or(SHARED_LANES)
}

/// Whether the device allows a workgroup of this many lanes with x in workgroup memory.
fn fits(problem: &GemvProblem, lanes: usize, facts: &DeviceFacts) -> bool {
    lanes <= facts.invocations as usize
        && shared_bytes(problem.row_units, lanes) <= facts.workgroup_bytes as usize
}

/// Workgroup memory for x, the sums of its units, and the partial sums of teams.
fn shared_bytes(row_units: usize, lanes: usize) -> usize {
    row_units * (8 + 1) * 16 + lanes * (16 + 4)
}

#[cfg(test)]
mod tests {
    use super::{DeviceFacts, GemvProblem, GemvTiling, Team, XForm};

    fn large() -> DeviceFacts {
        DeviceFacts {
            invocations: 1024,
            workgroup_bytes: 48 << 10,
            packed_dot: true,
            subgroups: Some((32, 32)),
            ..DeviceFacts::floor()
        }
    }

    /// A problem with packed weights.
    fn problem(rows: usize, row_units: usize) -> GemvProblem {
        GemvProblem {
            rows,
            row_units,
            rows_each: 1,
            step: 1,
            computes_x: true,
            kv_splits: 0,
            branch_lora: false,
            packed: true,
            paired: false,
        }
    }

    #[test]
    fn tilings_follow_shapes_and_devices() {
        let wide = |n| DeviceFacts { subgroups: Some((n, n)), ..DeviceFacts::floor() };
        let (floor, wide8, wide32) = (DeviceFacts::floor(), wide(8), wide(32));
        let large = large();
        let (direct, floats, packed) = (XForm::Direct, XForm::Floats, XForm::Packed);
        for (rows, row_units, [rows_each, computes_x], facts, tiling) in [
            // Linear layers of E2B: head, gate and up, one of the same size, down, query.
            (262_144, 48, [1, 0], &large, (16, 1, 2, 1024, packed, 2048, 128)),
            (262_144, 48, [1, 0], &wide32, (16, 1, 2, 256, floats, 8192, 512)),
            (24_576, 48, [2, 1], &large, (16, 1, 2, 256, packed, 768, 384)),
            (12_288, 48, [2, 1], &large, (16, 1, 2, 256, packed, 384, 384)),
            (12_288, 48, [1, 0], &large, (16, 1, 2, 256, packed, 384, 384)),
            (6144, 48, [1, 0], &large, (16, 3, 1, 192, direct, 1536, 1536)),
            (1536, 384, [1, 0], &large, (32, 3, 1, 192, direct, 768, 768)),
            (2048, 48, [1, 0], &large, (16, 3, 1, 192, direct, 512, 512)),
            (2048, 64, [1, 0], &wide8, (8, 8, 1, 64, direct, 2048, 2048)),
            // After norms: query, key and value; the gate of the per-layer inputs.
            (2560, 48, [1, 1], &large, (16, 1, 1, 256, floats, 160, 160)),
            (256, 48, [1, 1], &large, (16, 3, 1, 192, floats, 64, 64)),
            (2560, 48, [1, 1], &floor, (16, 1, 1, 256, floats, 160, 160)),
            // The first of them in 26B-A4B, whose rows are longer.
            (8192, 88, [1, 1], &large, (32, 1, 2, 384, packed, 342, 342)),
            // With a LoRA up-projection on the branch: the gate of the per-layer inputs; gate and up.
            (256, 48, [1, 2], &large, (16, 3, 1, 384, floats, 32, 32)),
            (24_576, 48, [2, 2], &large, (16, 1, 2, 384, packed, 512, 256)),
            // Wider than workgroup memory.
            (262_144, 160, [1, 0], &wide32, (32, 1, 2, 64, direct, 65_536, 65_536)),
            // No more lanes than units.
            (3, 1, [1, 0], &floor, (1, 1, 1, 64, direct, 1, 1)),
        ] {
            let problem = GemvProblem {
                rows_each,
                computes_x: computes_x > 0,
                branch_lora: computes_x == 2,
                ..problem(rows, row_units)
            };
            let (lanes, split, rows, group, x_form, turns, groups) = tiling;
            let team = Team { lanes, split };
            let wanted = GemvTiling { team, rows, lanes: group, x_form, turns, groups };
            assert_eq!(GemvTiling::new(&problem, facts), Some(wanted), "{problem:?}");
        }
    }

    #[test]
    fn many_rows_take_pairs() {
        let large = large();
        let small = DeviceFacts { invocations: 256, ..large.clone() };
        for (rows, row_units, facts, wanted) in [
            // Lanes of a team, rows, lanes of a workgroup, form of x, workgroups.
            (262_144, 48, &large, (8, 4, 512, XForm::Pairs, 256)),
            (262_144, 48, &small, (8, 4, 256, XForm::Pairs, 512)),
            (262_144, 88, &large, (16, 4, 512, XForm::Pairs, 256)),
            (12_288, 48, &large, (16, 2, 256, XForm::Packed, 384)),
            // Gate and up of E2B's wider layers and of E4B: fewer rows at a time.
            (24_576, 48, &large, (8, 2, 256, XForm::Pairs, 384)),
            (20_480, 80, &large, (8, 2, 320, XForm::Pairs, 256)),
        ] {
            let problem = GemvProblem {
                computes_x: rows < 100_000,
                paired: true,
                ..problem(rows, row_units)
            };
            let tiled = GemvTiling::new(&problem, facts).map(|tiling| {
                (tiling.team.size(), tiling.rows, tiling.lanes, tiling.x_form, tiling.groups)
            });
            assert_eq!(tiled, Some(wanted), "{problem:?}");
        }
    }

    #[test]
    fn wide_rows_of_quantised_x_share_it() {
        let large = large();
        let unpacked = DeviceFacts { packed_dot: false, ..large.clone() };
        for (rows, row_units, facts, wanted) in [
            // Down projections of 31B and 12B; of E4B, whose rows are not wide; without int8 there is nothing to share.
            (5376, 672, &large, (32, 3, 4, 672)),
            (3840, 480, &large, (32, 3, 4, 480)),
            (2560, 320, &large, (32, 2, 1, 2560)),
            (5376, 672, &unpacked, (32, 1, 1, 2688)),
        ] {
            let problem =
                GemvProblem { computes_x: false, paired: true, ..problem(rows, row_units) };
            let tiled = GemvTiling::new(&problem, facts).map(|tiling| {
                assert_eq!(tiling.x_form, XForm::Direct, "{problem:?}");
                (tiling.team.lanes, tiling.team.split, tiling.rows, tiling.groups)
            });
            assert_eq!(tiled, Some(wanted), "{problem:?}");
        }
    }

    #[test]
    fn turns_compute_whole_steps_if_lanes_allow() {
        let large = large();
        let small = DeviceFacts { invocations: 320, ..large.clone() };
        for (rows, row_units, facts, lanes, outputs) in [
            // Gate and up of E2B's layers, of E4B, and of E4B on a device with fewer lanes.
            (24_576, 48, &large, 256, 32),
            (12_288, 48, &large, 256, 16),
            (20_480, 80, &large, 384, 48),
            (20_480, 80, &small, 320, 40),
        ] {
            let problem =
                GemvProblem { rows_each: 2, step: 16, paired: true, ..problem(rows, row_units) };
            let tiling = GemvTiling::new(&problem, facts)
                .map(|tiling| (tiling.lanes, tiling.outputs(&problem)));
            assert_eq!(tiling, Some((lanes, outputs)), "{problem:?}");
        }
    }

    #[test]
    fn computed_x_must_fit_workgroup_memory() {
        assert_eq!(GemvTiling::new(&problem(8, 160), &DeviceFacts::floor()), None);
    }

    #[test]
    fn fewer_workgroups_combine_many_kv_splits() {
        for (kv_splits, wanted) in [(5, (32, 1, 192)), (6, (32, 2, 96))] {
            let problem = GemvProblem { kv_splits, ..problem(1536, 64) };
            let tiled = GemvTiling::new(&problem, &large())
                .map(|tiling| (tiling.team.size(), tiling.rows, tiling.groups));
            assert_eq!(tiled, Some(wanted), "{problem:?}");
        }
    }
}
