//! Flash attention: a workgroup computes a block of rows that share a kv head, over tiles of keys. The mask is a part.

use super::problem::{Problem, word};
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, Kernel, MatrixUnits, Part},
    graph::Element,
    ops::parts::matrix,
};

static FLASH: Kernel = Kernel { name: "attention/flash", source: include_str!("flash.wgsl") };
static FLASH_MATRIX: Kernel =
    Kernel { name: "attention/flash_matrix", source: include_str!("flash_matrix.wgsl") };
pub(super) static WEIGHTED_SUMS: Part = Part {
    kind: "weighted_sums",
    name: "weighted_sums",
    source: include_str!("../weighted_sums.wgsl"),
};

/// Rows per block without matrix units.
pub(super) const ROWS: usize = 32;
/// Lanes per workgroup without matrix units.
const LANES: usize = 256;

/// The tiling of flash attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlashTile {
    /// Without matrix units, with this number of vec4s of a head in workgroup memory at a time.
    Plain { stage: usize },
    /// With matrix units.
    Matrix(HeadTile, MatrixUnits),
}

impl FlashTile {
    /// With matrix units if the device has them and there is a tile for the head width.
    pub(super) fn new(width: usize, facts: &DeviceFacts) -> Self {
        Self::matrix(width, facts).unwrap_or(Self::plain(width, facts))
    }

    /// With matrix units, for head widths that have a tile.
    pub(super) fn matrix(width: usize, facts: &DeviceFacts) -> Option<Self> {
        let tile = Self::Matrix(HeadTile::of(width)?, facts.matrix?);
        (facts.workgroup_bytes >= 32 << 10).then_some(tile)
    }

    /// Without matrix units, for every head width.
    pub(super) fn plain(width: usize, facts: &DeviceFacts) -> Self {
        Self::Plain { stage: stage(width, facts) }
    }
}

/// A tile for matrix units, by head width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadTile {
    Width64,
    Width128,
    Width256,
    Width512,
}

impl HeadTile {
    fn of(width: usize) -> Option<Self> {
        match width {
            64 => Some(Self::Width64),
            128 => Some(Self::Width128),
            256 => Some(Self::Width256),
            512 => Some(Self::Width512),
            _ => None,
        }
    }

    /// Rows per block, as in its part.
    fn rows(self) -> usize {
        match self {
            Self::Width64 | Self::Width128 => 64,
            Self::Width256 | Self::Width512 => 32,
        }
    }

    /// The part with the sizes of the tile.
    fn part(self) -> &'static Part {
        match self {
            Self::Width64 => part!("tile_size", "64"),
            Self::Width128 => part!("tile_size", "128"),
            Self::Width256 => part!("tile_size", "256"),
            Self::Width512 => part!("tile_size", "512"),
        }
    }
}

/// Queries (input 0) over the KV caches (inputs 1 and 2); the caller adds the part of its mask.
pub(super) fn dispatch(problem: &Problem, cache: Element, tile: FlashTile) -> Dispatch {
    let params = problem.params();
    let (dispatch, rows) = match tile {
        FlashTile::Plain { stage } => {
            let dispatch = problem
                .over_cache(&FLASH, &params, cache)
                .part(&WEIGHTED_SUMS)
                .constant("EACH", rows_per_lane(problem.width))
                .constant("STAGE", word(stage));
            (dispatch, ROWS)
        }
        FlashTile::Matrix(head, units) => {
            let dispatch = problem.over_cache_f16(&FLASH_MATRIX, &params, cache);
            (dispatch.part(matrix(units)).part(head.part()), head.rows())
        }
    };
    [0, 1, 2]
        .map(BufferRef::Input)
        .into_iter()
        .fold(dispatch, Dispatch::read)
        .write(BufferRef::Output(0))
        .grid(problem.rows().div_ceil(rows), problem.kv_heads, 1)
}

/// vec4s of a head that kernels without matrix units stage in workgroup memory at a time.
pub(super) fn stage(width: usize, facts: &DeviceFacts) -> usize {
    let large_memory = facts.workgroup_bytes >= 32 << 10 && width.is_multiple_of(32);
    match (large_memory, width.is_multiple_of(16)) {
        (true, _) => 8,
        (false, true) => 4,
        // Heads of 72, for example.
        (false, false) => 2,
    }
}

/// Rows per lane; a lane accumulates one vec4 of the values for each.
pub(super) fn rows_per_lane(width: usize) -> u32 {
    let groups = (LANES * 4 / width).min(ROWS);
    word(ROWS.div_ceil(groups))
}
