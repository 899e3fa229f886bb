//! Which kernel, and how it is cut into workgroups.

use super::gpu::{GROUP, SPLIT_KEYS};
use crate::gpu::DeviceFacts;

/// What the choice depends on, beside the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) tokens: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) width: usize,
    /// The most keys a run can see.
    pub(super) keys: usize,
}

impl Sizes {
    /// Rows of queries that share a kv head.
    pub(super) fn rows(&self) -> usize {
        self.tokens * self.heads / self.kv_heads
    }
}

/// Which kernel, and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Rows a workgroup takes together, and workgroups the keys are split over.
    Split { rows: usize, splits: usize },
    /// Quads of a head staged at a time.
    Tile { stage: usize },
}

impl Choice {
    /// Tokens up to which the cache is split.
    const FEW_TOKENS: usize = 8;
    /// Rows the split kernel has registers for.
    const MOST_ROWS: usize = 8;
    /// Keys one workgroup takes without help.
    const FEW_KEYS: usize = 128;
    /// Workgroups that keep a large device busy.
    const BUSY: usize = 256;
    /// Splits the combining kernel has room for.
    const MOST_SPLITS: usize = 128;

    pub(super) fn new(sizes: &Sizes, facts: &DeviceFacts) -> Self {
        if sizes.tokens > Self::FEW_TOKENS {
            return Self::Tile { stage: stage(sizes.width, facts) };
        }
        let most = (1..=Self::MOST_ROWS.min(sizes.rows()))
            .rev()
            .find(|rows| split_bytes(*rows, sizes.width) <= facts.workgroup_bytes as usize);
        let blocks = sizes.rows().div_ceil(most.unwrap_or(1));
        // Blocks of equal size: 9 rows are two blocks of 5, not 8 and 1.
        let rows = sizes.rows().div_ceil(blocks);
        let splits = if sizes.keys <= Self::FEW_KEYS {
            1
        } else {
            let busy = (Self::BUSY / (blocks * sizes.kv_heads)).clamp(4, Self::MOST_SPLITS);
            sizes.keys.div_ceil(SPLIT_KEYS).min(busy)
        };
        Self::Split { rows, splits }
    }
}

/// Quads of a head that the tile kernels stage at a time.
pub(super) fn stage(width: usize, facts: &DeviceFacts) -> usize {
    let roomy = facts.workgroup_bytes >= 32 << 10 && width.is_multiple_of(32);
    if roomy { 8 } else { 4 }
}

/// Workgroup memory of the split kernel: queries, weights, numbers of the rows, sums of the lanes, sums of the teams.
fn split_bytes(rows: usize, width: usize) -> usize {
    rows * (width * 4 + SPLIT_KEYS * 4 + 12) + GROUP * 16 + GROUP * 4
}

#[cfg(test)]
mod tests {
    use super::{Choice, Sizes, split_bytes};
    use crate::gpu::DeviceFacts;

    #[test]
    fn kernels_follow_tokens_heads_keys_and_memory() {
        let floor = DeviceFacts::floor();
        let roomy = DeviceFacts { workgroup_bytes: 32 << 10, ..DeviceFacts::floor() };
        let sizes =
            |tokens, heads, kv_heads, width, keys| Sizes { tokens, heads, kv_heads, width, keys };
        let split = |rows, splits| Choice::Split { rows, splits };
        for (sizes, facts, want) in [
            // E2B: one token, sliding and global layers.
            (sizes(1, 8, 1, 256, 512), &floor, split(8, 8)),
            (sizes(1, 8, 1, 512, 8192), &floor, split(4, 128)),
            (sizes(1, 8, 1, 512, 8192), &roomy, split(8, 128)),
            // 31B, sliding: two heads share one of sixteen kv heads.
            (sizes(1, 32, 16, 256, 1024), &floor, split(2, 16)),
            (sizes(1, 9, 1, 64, 100), &floor, split(5, 1)),
            (sizes(4, 8, 2, 64, 129), &floor, split(8, 3)),
            (sizes(512, 8, 1, 512, 8192), &floor, Choice::Tile { stage: 4 }),
            (sizes(512, 8, 1, 512, 8192), &roomy, Choice::Tile { stage: 8 }),
            (sizes(512, 8, 1, 48, 8192), &roomy, Choice::Tile { stage: 4 }),
        ] {
            assert_eq!(Choice::new(&sizes, facts), want, "{sizes:?}");
        }
    }

    #[test]
    fn the_widest_head_fits_the_floor() {
        assert!(split_bytes(1, 512) <= DeviceFacts::floor().workgroup_bytes as usize);
    }
}
