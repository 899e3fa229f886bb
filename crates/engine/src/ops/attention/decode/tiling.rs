//! How split-KV attention assigns rows and keys to workgroups.

use crate::{gpu::DeviceFacts, ops::attention::problem::Problem};

/// How a workgroup processes its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum RowForm {
    /// One or two rows: teams of lanes work independently until the last key.
    Single,
    /// Several rows that share a kv head: keys and values are read once for all of them.
    Grouped,
}

/// The assignment of rows and keys to workgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct SplitKvTiling {
    /// Rows per workgroup.
    pub(in super::super) rows: usize,
    /// KV splits.
    pub(in super::super) splits: usize,
    /// Lanes per team; a team computes the dot product of a query and a key.
    pub(in super::super) lanes: usize,
    /// Heads in workgroup memory at a time.
    pub(in super::super) staged: usize,
    /// Lanes per workgroup.
    pub(in super::super) workgroup: usize,
    /// How the workgroup processes its rows.
    pub(in super::super) form: RowForm,
}

// Trade-offs measured with `rullama bench` at several depths: docs/performance/lab.md.
impl SplitKvTiling {
    /// Lanes of a workgroup with grouped rows.
    const GROUPED_LANES: usize = 256;
    /// Up to this number of keys, a workgroup computes a single row, even if more rows share the kv head; beyond, reading keys once for two rows
    /// pays.
    const ONE_ROW_KEYS: usize = 1024;
    /// Up to this number of keys, a workgroup computes two rows; beyond, reading keys once for all rows pays.
    const TWO_ROW_KEYS: usize = 8192;
    /// Maximum KV splits of single rows, without the split of the token's own key: few enough for the op that reads the heads to combine them. A
    /// window of 512 keys has this number of tiles.
    const SINGLE_SPLITS: usize = 8;
    /// Maximum KV splits of all heads together, but at least four per head: every workgroup of the op that reads the heads combines all of them.
    const SINGLE_PARTIALS: usize = 64;
    /// Lanes of a workgroup with single rows, if the device allows.
    const SINGLE_LANES: usize = 512;
    /// Maximum workgroup memory for the sums of the teams.
    const SINGLE_BYTES: usize = 16 << 10;
    /// Maximum rows that fit the registers of the grouped kernel.
    const MAX_ROWS: usize = 8;
    /// Maximum keys of a workgroup without a split: a second dispatch to combine splits costs about as much.
    const UNSPLIT_KEYS: usize = 64;
    /// Workgroups that saturate a large device.
    const BUSY: usize = 256;
    /// The same for grouped rows: KV splits are whole tiles, and with slightly more tiles than workgroups, half of the workgroups would take two
    /// tiles and the others none.
    const GROUPED_BUSY: usize = 512;
    /// Minimum KV splits of a long cache, even if there are enough workgroups without them.
    const LEAST_SPLITS: usize = 8;

    /// Rows that share a kv head, in one workgroup.
    pub(in super::super) fn grouped_row(problem: &Problem, facts: &DeviceFacts) -> Self {
        let lanes = team_lanes(facts);
        let all = problem.rows();
        // Each lane of a team holds the scores of one row.
        let most = (1..=Self::MAX_ROWS.min(all).min(lanes)).rev().find(|rows| {
            grouped_bytes(*rows, problem.width, lanes) <= facts.workgroup_bytes as usize
        });
        let staged = most.unwrap_or(1);
        let least = all.div_ceil(staged);
        // Blocks of equal size: 9 rows are two blocks of 5 and 4, not 8 and 1.
        let rows = |blocks: usize| all.div_ceil(blocks);
        let workgroup = Self::GROUPED_LANES;
        let tiling =
            Self { rows: rows(least), splits: 1, lanes, staged, workgroup, form: RowForm::Grouped };
        let keys = problem.keys();
        if keys <= Self::UNSPLIT_KEYS {
            return tiling;
        }
        let tiles = keys.div_ceil(tiling.tile());
        // Each block of rows reads a token's short cache again: with fewer rows, its workgroup finishes sooner.
        let blocks = match problem.tokens {
            1 => (Self::BUSY / (tiles * problem.kv_heads)).clamp(least, all),
            _ => least,
        };
        let tiling = Self { rows: rows(blocks), ..tiling };
        let blocks = all.div_ceil(tiling.rows);
        let busy = (Self::GROUPED_BUSY / (blocks * problem.kv_heads)).max(Self::LEAST_SPLITS);
        Self { splits: tiles.min(busy), ..tiling }
    }

    /// One or two rows of one token per workgroup, if there are not too many keys and lanes hold whole pairs of vec4s.
    pub(in super::super) fn single_row(problem: &Problem, facts: &DeviceFacts) -> Option<Self> {
        let grouped = Self::grouped_row(problem, facts);
        let (lanes, keys) = (grouped.lanes, problem.keys());
        let pairs = problem.width / 8 / lanes;
        let whole = problem.width == pairs * 8 * lanes && matches!(pairs, 1 | 2);
        let single = (Self::UNSPLIT_KEYS + 1..=Self::TWO_ROW_KEYS).contains(&keys);
        if problem.tokens > 1 || !single || !whole || facts.subgroups.is_none() {
            return None;
        }
        let sum_bytes = |workgroup: usize| workgroup / lanes * problem.width * 4;
        let fits = |workgroup: &usize| {
            *workgroup <= facts.invocations as usize && sum_bytes(*workgroup) <= Self::SINGLE_BYTES
        };
        let workgroup = [Self::SINGLE_LANES, Self::GROUPED_LANES].into_iter().find(fits)?;
        let staged = grouped.staged.max(workgroup / lanes);
        let tiling = Self { rows: 1, staged, workgroup, form: RowForm::Single, ..grouped };
        let bytes = staged * problem.width * 4 + workgroup * 20 + tiling.teams() * 8;
        if bytes > facts.workgroup_bytes as usize {
            return None;
        }
        let tiles = keys.div_ceil(tiling.tile());
        if keys <= Self::ONE_ROW_KEYS {
            let most = (Self::SINGLE_PARTIALS / problem.heads).clamp(4, Self::SINGLE_SPLITS);
            return Some(Self { splits: tiles.div_ceil(tiles.div_ceil(most)), ..tiling });
        }
        let rows = problem.rows().min(2);
        let groups = problem.rows().div_ceil(rows) * problem.kv_heads;
        let busy = (Self::BUSY / groups).max(Self::LEAST_SPLITS);
        Some(Self { rows, splits: tiles.min(busy), ..tiling })
    }

    /// Whether the op that reads the heads may combine the KV splits.
    pub(in super::super) fn reader_combines(&self) -> bool {
        let combinable = (2..=Self::SINGLE_SPLITS).contains(&self.splits);
        self.form == RowForm::Single && self.rows == 1 && combinable
    }

    /// Teams of lanes; each scores four keys at a time.
    pub(in super::super) fn teams(&self) -> usize {
        self.workgroup / self.lanes
    }

    /// Keys per tile of a workgroup.
    pub(in super::super) fn tile(&self) -> usize {
        self.teams() * 4
    }
}

/// Lanes per team: at most 32, so that short windows still occupy many workgroups.
fn team_lanes(facts: &DeviceFacts) -> usize {
    facts.subgroups.map_or(16, |(least, _)| least.min(32)) as usize
}

/// Workgroup memory of the grouped kernel in bytes: queries, weights, each row's largest score and sum, and the lanes' sums.
fn grouped_bytes(rows: usize, width: usize, lanes: usize) -> usize {
    let workgroup = SplitKvTiling::GROUPED_LANES;
    rows * (width * 4 + workgroup / lanes * 16 + 12) + workgroup * 20
}

#[cfg(test)]
mod tests {
    use super::grouped_bytes;
    use crate::gpu::DeviceFacts;

    #[test]
    fn the_widest_head_fits_the_minimum_limits() {
        assert!(grouped_bytes(1, 512, 4) <= DeviceFacts::floor().workgroup_bytes as usize);
    }
}
