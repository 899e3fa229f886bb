//! How a product of one column is cut, by shapes and facts alone. The constants are for a large device; a small one loses little by them.

use crate::{gpu::DeviceFacts, ops::linear::Team};

/// Rows a team may make, best first: each more shares what is read of x, which is several times the bytes of the weights.
const TEAM_ROWS: [usize; 3] = [4, 2, 1];
/// Lanes that keep enough loads in flight for a large device. Below, rows are split among more lanes, or teams make fewer rows.
const BUSY_LANES: usize = 64 << 10;
/// Lanes of a workgroup whose x lies in its memory, at most.
const SHARED_LANES: usize = 256;
/// Workgroups whose x lies in their memory, at most; then they take turns, so that x is brought less often.
const SHARED_GROUPS: usize = 1024;
/// Turns each such workgroup must have before it pays to bring x there.
const LEAST_TURNS: usize = 4;

/// How the rows of a slab are dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Who makes rows.
    pub(super) team: Team,
    /// How many at a time.
    pub(super) rows: usize,
    /// Lanes of a workgroup.
    pub(super) lanes: usize,
    /// x lies in workgroup memory.
    pub(super) shared: bool,
    /// Turns of workgroups that make all rows.
    pub(super) turns: usize,
    /// Workgroups that take them.
    pub(super) groups: usize,
}

/// What a product asks of its cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wants {
    /// Rows of the slab.
    pub(super) rows: usize,
    /// Units in a row.
    pub(super) row_units: usize,
    /// Rows a result is made of.
    pub(super) rows_each: usize,
    /// x is made in workgroup memory.
    pub(super) makes_x: bool,
}

impl Cut {
    /// For a device; `None` if x must lie in workgroup memory and does not fit.
    pub(super) fn new(wants: &Wants, facts: &DeviceFacts) -> Option<Self> {
        let fits = shared_bytes(wants.row_units) <= facts.workgroup_bytes as usize;
        if wants.makes_x && !fits {
            return None;
        }
        let whole = || TEAM_ROWS.into_iter().filter(|made| made.is_multiple_of(wants.rows_each));
        let cut = |made: usize| {
            (Team::new(wants.rows.div_ceil(made), wants.row_units, BUSY_LANES, facts), made)
        };
        let busy =
            |(team, made): &(Team, usize)| wants.rows.div_ceil(*made) * team.size() >= BUSY_LANES;
        let (team, rows) = whole().map(cut).find(busy).unwrap_or(cut(wants.rows_each));
        let results = |lanes: usize| lanes / team.size() * rows / wants.rows_each;
        let turns = |lanes: usize| (wants.rows / wants.rows_each).div_ceil(results(lanes));
        let lanes = team.most(SHARED_LANES);
        let shared = wants.makes_x || fits && turns(lanes) >= SHARED_GROUPS * LEAST_TURNS;
        let lanes = if shared { lanes } else { team.group() };
        let turns = turns(lanes);
        let groups = if shared { turns.min(SHARED_GROUPS) } else { turns };
        Some(Self { team, rows, lanes, shared, turns, groups })
    }
}

/// Workgroup memory for x, the sums of its units and what teams sum through.
fn shared_bytes(row_units: usize) -> usize {
    row_units * (8 + 1) * 16 + SHARED_LANES * (16 + 4)
}
