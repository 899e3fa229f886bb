//! Which kernel, and how it is cut into workgroups.

use crate::gpu::{DeviceFacts, MatrixUnits, Part};

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

/// Tokens up to which the cache is split.
pub(super) const FEW_TOKENS: usize = 8;

/// Which kernel, and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Few tokens.
    Split(Cut),
    /// Many tokens.
    Many(Form),
}

/// What makes the tiles of many tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Plain arithmetic, with so many quads of a head staged at a time.
    Plain { stage: usize },
    /// Matrix units.
    Matrix(Head, MatrixUnits),
}

impl Form {
    pub(super) fn new(width: usize, facts: &DeviceFacts) -> Self {
        match (Head::of(width), facts.matrix) {
            (Some(head), Some(units)) if facts.workgroup_bytes >= 32 << 10 => {
                Self::Matrix(head, units)
            }
            _ => Self::Plain { stage: stage(width, facts) },
        }
    }
}

/// A width of heads that matrix units have a part for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// 64 numbers.
    Short,
    /// 128 numbers.
    Medium,
    /// 256 numbers.
    Long,
    /// 512 numbers.
    Longest,
}

impl Head {
    fn of(width: usize) -> Option<Self> {
        match width {
            64 => Some(Self::Short),
            128 => Some(Self::Medium),
            256 => Some(Self::Long),
            512 => Some(Self::Longest),
            _ => None,
        }
    }

    /// Rows that a workgroup takes, as its part says.
    pub(super) fn rows(self) -> usize {
        match self {
            Self::Short | Self::Medium => 64,
            Self::Long | Self::Longest => 32,
        }
    }

    /// The part with its sizes.
    pub(super) fn part(self) -> &'static Part {
        static SHORT: Part =
            Part { kind: "head", name: "head/64", source: include_str!("head/64.wgsl") };
        static MEDIUM: Part =
            Part { kind: "head", name: "head/128", source: include_str!("head/128.wgsl") };
        static LONG: Part =
            Part { kind: "head", name: "head/256", source: include_str!("head/256.wgsl") };
        static LONGEST: Part =
            Part { kind: "head", name: "head/512", source: include_str!("head/512.wgsl") };
        match self {
            Self::Short => &SHORT,
            Self::Medium => &MEDIUM,
            Self::Long => &LONG,
            Self::Longest => &LONGEST,
        }
    }
}

impl Choice {
    /// For queries that come normed and turned.
    pub(super) fn together(sizes: &Sizes, facts: &DeviceFacts) -> Self {
        if sizes.tokens <= FEW_TOKENS {
            Self::Split(Cut::together(sizes, facts))
        } else {
            Self::Many(Form::new(sizes.width, facts))
        }
    }
}

/// How rows and keys are dealt out to workgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Rows a workgroup takes together.
    pub(super) rows: usize,
    /// How many KV splits there are.
    pub(super) splits: usize,
    /// Lanes that share a key's score.
    pub(super) lanes: usize,
    /// Heads there is memory for at a time.
    pub(super) staged: usize,
    /// Lanes of a workgroup.
    pub(super) group: usize,
    /// Whether a workgroup takes one row by itself, or two: its teams need not meet until the last key.
    pub(super) alone: bool,
}

impl Cut {
    /// Lanes of a workgroup that takes rows together.
    const GROUP: usize = 256;
    /// Keys up to which each row is taken by itself, however many share a kv head: beyond, it pays to read keys for two, and beyond many
    /// more for all. On an H200, E2B at depth 8,192 takes 455 tokens/s by two and 462 by eight; with nothing in such a cache, 501 by two.
    const ALONE_KEYS: usize = 1024;
    const TWO_KEYS: usize = 8192;
    /// KV splits of so few keys, the run's own tokens not counted: what reads them next combines them. A window of 512 keys has as many tiles.
    const ALONE_SPLITS: usize = 8;
    /// Where there are many heads, fewer, since every workgroup of what reads them combines all: so many of all heads, but not below four. On an
    /// H200, 26B-A4B with 16 heads takes 412 tokens/s with four and 402 with eight, at depth 8,192 380 and 370.
    const ALONE_PARTS: usize = 64;
    /// Lanes of their workgroups, where they fit.
    const ALONE_GROUP: usize = 512;
    /// Workgroup memory that their sums may take to meet in.
    const ALONE_BYTES: usize = 16 << 10;
    /// Rows the split kernel has registers for.
    const MOST_ROWS: usize = 8;
    /// Keys one workgroup takes without help: a second dispatch costs about as much.
    const FEW_KEYS: usize = 64;
    /// Workgroups that keep a large device busy.
    const BUSY: usize = 256;
    /// Of those that take rows together, so many: KV splits are whole tiles, and where there are a few more tiles than workgroups, half of them would
    /// take two and the others none.
    const TOGETHER: usize = 512;
    /// The fewest KV splits of a long cache, however many workgroups there are without them.
    const LEAST_SPLITS: usize = 8;

    /// For raw queries.
    pub(super) fn new(sizes: &Sizes, facts: &DeviceFacts) -> Self {
        let together = Self::together(sizes, facts);
        let many = sizes.keys > Self::FEW_KEYS;
        many.then(|| together.alone(sizes, facts)).flatten().unwrap_or(together)
    }

    fn together(sizes: &Sizes, facts: &DeviceFacts) -> Self {
        let lanes = lanes(facts);
        // A lane keeps a row's scores.
        let most = (1..=Self::MOST_ROWS.min(sizes.rows()).min(lanes))
            .rev()
            .find(|rows| split_bytes(*rows, sizes.width, lanes) <= facts.workgroup_bytes as usize);
        let staged = most.unwrap_or(1);
        let least = sizes.rows().div_ceil(staged);
        // Blocks of equal size: 9 rows are two blocks of 5, not 8 and 1.
        let rows = |blocks: usize| sizes.rows().div_ceil(blocks);
        let cut =
            Self { rows: rows(least), splits: 1, lanes, staged, group: Self::GROUP, alone: false };
        if sizes.keys <= Self::FEW_KEYS {
            return cut;
        }
        let tiles = sizes.keys.div_ceil(cut.tile());
        // Short caches of one token are read again by each block of rows: the fewer those are, the sooner a workgroup is done.
        let blocks = match sizes.tokens {
            1 => (Self::BUSY / (tiles * sizes.kv_heads)).clamp(least, sizes.rows()),
            _ => least,
        };
        let cut = Self { rows: rows(blocks), ..cut };
        let blocks = sizes.rows().div_ceil(cut.rows);
        let busy = (Self::TOGETHER / (blocks * sizes.kv_heads)).max(Self::LEAST_SPLITS);
        Self { splits: tiles.min(busy), ..cut }
    }

    /// Each row of one token by itself, or two of them, if lanes can keep whole pairs of quads.
    fn alone(self, sizes: &Sizes, facts: &DeviceFacts) -> Option<Self> {
        let pairs = sizes.width / 8 / self.lanes;
        let whole = sizes.width == pairs * 8 * self.lanes && matches!(pairs, 1 | 2);
        let many = sizes.keys > Self::TWO_KEYS;
        if sizes.tokens > 1 || many || !whole || facts.subgroups.is_none() {
            return None;
        }
        let bytes = |group: usize| group / self.lanes * sizes.width * 4;
        let fits = |group: &usize| {
            *group <= facts.invocations as usize && bytes(*group) <= Self::ALONE_BYTES
        };
        let group = [Self::ALONE_GROUP, Self::GROUP].into_iter().find(fits)?;
        let staged = self.staged.max(group / self.lanes);
        let cut = Self { rows: 1, staged, group, alone: true, ..self };
        let room = facts.workgroup_bytes as usize;
        if staged * sizes.width * 4 + group * 20 + cut.teams() * 8 > room {
            return None;
        }
        let tiles = sizes.keys.div_ceil(cut.tile());
        if sizes.keys <= Self::ALONE_KEYS {
            let most = (Self::ALONE_PARTS / sizes.heads).clamp(4, Self::ALONE_SPLITS);
            return Some(Self { splits: tiles.div_ceil(tiles.div_ceil(most)), ..cut });
        }
        let rows = sizes.rows().min(2);
        let groups = sizes.rows().div_ceil(rows) * sizes.kv_heads;
        let busy = (Self::BUSY / groups).max(Self::LEAST_SPLITS);
        Some(Self { rows, splits: tiles.min(busy), ..cut })
    }

    /// Whether what reads the rows may combine the KV splits.
    pub(super) fn reader_combines(&self) -> bool {
        self.alone && self.rows == 1 && (2..=Self::ALONE_SPLITS).contains(&self.splits)
    }

    /// Teams of lanes; each scores four keys.
    pub(super) fn teams(&self) -> usize {
        self.group / self.lanes
    }

    /// Keys a workgroup takes at a time.
    pub(super) fn tile(&self) -> usize {
        self.teams() * 4
    }
}

/// Lanes that share a key's score: with 32, short windows still keep many workgroups busy.
fn lanes(facts: &DeviceFacts) -> usize {
    facts.subgroups.map_or(16, |(least, _)| least.min(32)) as usize
}

/// Quads of a head that the tile kernels stage at a time.
pub(super) fn stage(width: usize, facts: &DeviceFacts) -> usize {
    let roomy = facts.workgroup_bytes >= 32 << 10 && width.is_multiple_of(32);
    match (roomy, width.is_multiple_of(16)) {
        (true, _) => 8,
        (false, true) => 4,
        // Heads of 72, say.
        (false, false) => 2,
    }
}

/// Workgroup memory of the split kernel: queries, weights, numbers of the rows, sums of the lanes.
fn split_bytes(rows: usize, width: usize, lanes: usize) -> usize {
    rows * (width * 4 + Cut::GROUP / lanes * 16 + 12) + Cut::GROUP * 20
}

#[cfg(test)]
mod tests {
    use super::{Choice, Cut, Form, Head, Sizes, split_bytes};
    use crate::gpu::{DeviceFacts, MatrixUnits};

    #[test]
    fn kernels_follow_tokens_heads_keys_and_memory() {
        let floor = DeviceFacts::floor();
        let roomy = DeviceFacts { workgroup_bytes: 32 << 10, ..DeviceFacts::floor() };
        let wide = DeviceFacts { subgroups: Some((32, 32)), ..roomy.clone() };
        let narrow = DeviceFacts { subgroups: Some((4, 4)), ..roomy.clone() };
        let sizes =
            |tokens, heads, kv_heads, width, keys| Sizes { tokens, heads, kv_heads, width, keys };
        let units = DeviceFacts { f16: true, matrix: Some(MatrixUnits::Wgpu16), ..wide.clone() };
        let plain = |stage| Choice::Many(Form::Plain { stage });
        let matrix = |head| Choice::Many(Form::Matrix(head, MatrixUnits::Wgpu16));
        let split = |rows, splits, lanes, staged| {
            Choice::Split(Cut { rows, splits, lanes, staged, group: 256, alone: false })
        };
        for (sizes, facts, want) in [
            // E2B: one token, sliding and global layers.
            (sizes(1, 8, 1, 256, 512), &floor, split(1, 8, 16, 8)),
            (sizes(1, 8, 1, 256, 512), &wide, split(1, 16, 32, 8)),
            (sizes(1, 8, 1, 512, 8192), &floor, split(4, 128, 16, 4)),
            (sizes(1, 8, 1, 512, 8192), &roomy, split(4, 128, 16, 8)),
            (sizes(1, 8, 1, 512, 32_768), &wide, split(8, 512, 32, 8)),
            (sizes(1, 8, 1, 512, 32_768), &narrow, split(4, 128, 4, 4)),
            // 31B, sliding: two heads share one of sixteen kv heads.
            (sizes(1, 32, 16, 256, 1024), &wide, split(2, 32, 32, 2)),
            (sizes(1, 9, 1, 64, 60), &floor, split(5, 1, 16, 8)),
            (sizes(4, 8, 2, 64, 129), &floor, split(8, 3, 16, 8)),
            (sizes(512, 8, 1, 512, 8192), &floor, plain(4)),
            (sizes(512, 8, 1, 512, 8192), &roomy, plain(8)),
            (sizes(512, 8, 1, 48, 8192), &roomy, plain(4)),
            (sizes(512, 8, 1, 512, 8192), &units, matrix(Head::Longest)),
            (sizes(2520, 12, 12, 64, 2520), &units, matrix(Head::Short)),
            (sizes(2520, 16, 16, 72, 2520), &units, plain(2)),
        ] {
            assert_eq!(Choice::together(&sizes, facts), want, "{sizes:?}");
        }
    }

    #[test]
    fn raw_queries_of_one_token_are_taken_alone_where_keys_are_not_many() {
        let wide = DeviceFacts {
            subgroups: Some((32, 32)),
            workgroup_bytes: 48 << 10,
            invocations: 1024,
            ..DeviceFacts::floor()
        };
        let none = DeviceFacts { subgroups: None, ..wide.clone() };
        let sizes =
            |tokens, kv_heads, width, keys| Sizes { tokens, heads: 8, kv_heads, width, keys };
        let many = Sizes { heads: 16, ..sizes(1, 8, 256, 1024) };
        // Rows, KV splits, lanes of a workgroup, whether alone, whether what follows combines.
        for (sizes, facts, want) in [
            (sizes(1, 1, 256, 512), &wide, (1, 8, 512, true, true)),
            (sizes(1, 1, 512, 641), &wide, (1, 7, 256, true, true)),
            (many, &wide, (1, 4, 512, true, true)),
            (sizes(1, 1, 512, 4096), &wide, (2, 64, 256, true, false)),
            (sizes(1, 1, 512, 32_768), &wide, (8, 512, 256, false, false)),
            (sizes(1, 1, 256, 64), &wide, (8, 1, 256, false, false)),
            (sizes(2, 1, 256, 512), &wide, (8, 16, 256, false, false)),
            // Pairs of quads that no lane has whole, and lanes that exchange nothing.
            (sizes(1, 1, 128, 512), &wide, (1, 16, 256, false, false)),
            (sizes(1, 1, 256, 512), &none, (1, 8, 256, false, false)),
        ] {
            let cut = Cut::new(&sizes, facts);
            let made = (cut.rows, cut.splits, cut.group, cut.alone, cut.reader_combines());
            assert_eq!(made, want, "{sizes:?}");
        }
    }

    #[test]
    fn the_widest_head_fits_the_floor() {
        assert!(split_bytes(1, 512, 4) <= DeviceFacts::floor().workgroup_bytes as usize);
    }
}
