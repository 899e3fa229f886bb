//! Teams: the lanes that compute rows of a GEMV together.

use crate::gpu::DeviceFacts;

/// Maximum lanes of a team that sum by shuffles.
const MAX_LANES: usize = 32;
/// Lanes of a workgroup: at least one team, and a multiple of the first value if that does not exceed the second.
const GROUP: (usize, usize) = (64, 256);

/// Lanes that share a row: `split` parts of `lanes` lanes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::matmul) struct Team {
    /// Lanes that sum by shuffles.
    pub(in crate::ops::matmul) lanes: usize,
    /// Number of such parts.
    pub(in crate::ops::matmul) split: usize,
}

impl Team {
    /// The team for `teams` teams that read rows of `row_units` units: the fewest parts that give `busy` lanes.
    pub(in crate::ops::matmul) fn new(
        teams: usize,
        row_units: usize,
        busy: usize,
        facts: &DeviceFacts,
    ) -> Self {
        let lanes = lanes(row_units, facts);
        let turns = row_units.div_ceil(lanes).max(1);
        // Parts that divide the turns evenly, within a workgroup.
        let even = |split: &usize| turns.is_multiple_of(*split) && split * lanes <= GROUP.1;
        let mut splits = (1..=turns).filter(even);
        let most = splits.clone().next_back().unwrap_or(1);
        let split = splits.find(|split| teams * lanes * split >= busy).unwrap_or(most);
        Self { lanes, split }
    }

    /// Lanes of the team.
    pub(in crate::ops::matmul) fn size(self) -> usize {
        self.lanes * self.split
    }

    /// Lanes of a workgroup, a multiple of the team.
    pub(in crate::ops::matmul) fn group(self) -> usize {
        let most = GROUP.1 / self.size();
        let round = |teams: &usize| (teams * self.size()).is_multiple_of(GROUP.0);
        (1..=most).find(round).unwrap_or(most) * self.size()
    }

    /// Lanes of the largest workgroup with at most `lanes`.
    pub(in crate::ops::matmul) fn most(self, lanes: usize) -> usize {
        let most = (lanes / self.size()).max(1);
        let round = |teams: &usize| (teams * self.size()).is_multiple_of(GROUP.0);
        (1..=most).rev().find(round).unwrap_or(most) * self.size()
    }
}

/// Lanes that sum by shuffles: at most a subgroup, of which not much more than an eighth idles at the end of a row.
fn lanes(row_units: usize, facts: &DeviceFacts) -> usize {
    let widest = facts.subgroups.map_or(MAX_LANES, |(least, _)| MAX_LANES.min(least as usize));
    let mut lanes = widest.min(row_units.next_power_of_two());
    // 48 units are three full steps of 16 lanes, but one and a half of 32.
    while lanes > 8 && row_units.next_multiple_of(lanes) * 7 > row_units * 8 {
        lanes /= 2;
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::Team;

    #[test]
    fn workgroups_have_whole_teams() {
        for (lanes, split, group) in
            [(16, 1, 64), (16, 3, 192), (32, 6, 192), (1, 1, 64), (4, 11, 220), (32, 8, 256)]
        {
            assert_eq!(Team { lanes, split }.group(), group, "{lanes} lanes, {split} parts");
        }
    }
}
