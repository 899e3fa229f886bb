//! Selects the kernel of a matmul over experts and its workgroups.
//!
//! Slabs of the weight may end within an expert, so that an expert may be in two slabs. Each slab's dispatch computes the rows it has;
//! workgroups without any return at once.

use bytemuck::NoUninit;

use super::Sizes;
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, Edge, GpuCall, Kernel, Slabs},
    graph::Type,
    ops::{
        matmul::gemm::Tile,
        parts::{UNIT, WEIGHTS, X_UNIT, columns, quant, team},
    },
};

static GATHERED: Kernel =
    Kernel { name: "matmul/moe_gathered", source: include_str!("gathered.wgsl") };
static GROUPED: Kernel =
    Kernel { name: "matmul/moe_grouped", source: include_str!("grouped.wgsl") };
static TRANSPOSED: Kernel =
    Kernel { name: "matmul/moe_transposed", source: include_str!("transposed.wgsl") };

/// Lanes of a workgroup of the gathered matmul.
const GROUP: usize = 256;
/// Units of a row that a workgroup of the transposed matmul computes, as in its kernel.
const TILE_UNITS: usize = 8;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    planes: [u32; 4],
    width: u32,
    row_units: u32,
    slab_first: u32,
    slab_rows: u32,
    expert_rows: u32,
    experts: u32,
    slots: u32,
    chosen: u32,
    slots_per_column: u32,
    tiles: u32,
}

pub(super) fn forward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    if call.inputs() > 3 { grouped(call) } else { gathered(call) }
}

/// For few tokens: every slot reads its expert's weights.
fn gathered(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let sizes = Sizes::new(call.input(1), call.input(2));
    let lanes = lanes(call.slabs(1).row_units(), call.facts);
    let tiles = sizes.rows.div_ceil(GROUP / lanes);
    each_slab(
        || Dispatch::new(&GATHERED),
        call,
        call.input(0),
        tiles,
        |dispatch| {
            dispatch
                .part(columns(sizes.width))
                .part(UNIT)
                .part(X_UNIT)
                .part(team(call.facts))
                .constant("LANES", lanes as u32)
                .read(BufferRef::Input(0))
                .write(BufferRef::Output(0))
                .read(BufferRef::Input(2))
                .grid_over(tiles * sizes.slots)
        },
    )
}

/// For many tokens: an expert's tile of weights is decoded once for many slots.
fn grouped(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, slabs) = (Sizes::new(call.input(1), call.input(2)), call.slabs(1));
    let tile = Tile::for_groups(sizes.slots, sizes.experts, call.facts);
    let tiles = sizes.rows.div_ceil(tile.rows());
    let groups = tiles * most_slot_tiles(sizes.slots, sizes.experts, tile.columns());
    let (columns, prepared) = tile.columns_of(call, &slabs);
    let new = || tile.dispatch(&GROUPED, sizes.width, (slabs.dtype, groups));
    let dispatches = each_slab(new, call, call.input(0), tiles, |dispatch| {
        dispatch
            .read(columns)
            .write(BufferRef::Output(0))
            .read(BufferRef::Input(3))
            .read(BufferRef::Input(4))
            .grid_over(groups)
    });
    prepared.into_iter().chain(dispatches).collect()
}

/// The form in which a grouped matmul prefers to read x.
pub(super) fn reads(call: &GpuCall<'_>) -> Edge {
    if call.inputs() <= 3 {
        return Edge::RowMajor;
    }
    let (sizes, slabs) = (Sizes::new(call.input(1), call.input(2)), call.slabs(1));
    Tile::for_groups(sizes.slots, sizes.experts, call.facts).edge(call, &slabs)
}

pub(super) fn backward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let rows = call.output(0).shape.rows();
    let tiles = call.slabs(1).row_units().div_ceil(TILE_UNITS);
    each_slab(
        || Dispatch::new(&TRANSPOSED),
        call,
        call.output(0),
        tiles,
        |dispatch| {
            dispatch
                .read(BufferRef::Input(0))
                .write(BufferRef::Output(0))
                .read(BufferRef::Input(2))
                .grid_over(tiles * rows)
        },
    )
}

/// One dispatch per slab; the type of `x` gives the slots per row, `new` and `finish` add what differs between the kernels.
fn each_slab(
    new: impl Fn() -> Dispatch,
    call: &GpuCall<'_>,
    x: &Type,
    tiles: usize,
    finish: impl Fn(Dispatch) -> Dispatch,
) -> Vec<Dispatch> {
    let (sizes, slabs) = (Sizes::new(call.input(1), call.input(2)), call.slabs(1));
    let dispatch = |slab| {
        let mut params = params(&sizes, &slabs, slab);
        params.slots_per_column = word(sizes.slots_per_column(x));
        params.tiles = word(tiles);
        finish(
            new()
                .part(part!("params", "experts"))
                .part(WEIGHTS)
                .part(quant(slabs.dtype))
                .params(&params)
                .read(BufferRef::Slab(1, slab)),
        )
    };
    (0..slabs.rows.len()).map(dispatch).collect()
}

fn params(sizes: &Sizes, slabs: &Slabs, slab: usize) -> Params {
    Params {
        planes: slabs.planes(slab),
        width: word(sizes.width),
        row_units: word(slabs.row_units()),
        slab_first: word(slabs.rows[slab].start),
        slab_rows: word(slabs.rows[slab].len()),
        expert_rows: word(sizes.rows),
        experts: word(sizes.experts),
        slots: word(sizes.slots),
        chosen: word(sizes.chosen),
        slots_per_column: 0,
        tiles: 0,
    }
}

fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of one weight fit 32 bits")
}

/// Lanes per row: the most of which three quarters are busy.
fn lanes(row_units: usize, facts: &DeviceFacts) -> usize {
    let widest = facts.subgroups.map_or(32, |(least, _)| least.min(32)) as usize;
    let mut lanes = widest;
    while lanes > 1 && row_units * 4 < row_units.next_multiple_of(lanes) * 3 {
        lanes /= 2;
    }
    lanes
}

/// Number of slot tiles, as the kernel counts them: every expert, and the tokens past the count, have one that may be partial.
fn most_slot_tiles(slots: usize, experts: usize, tile_slots: usize) -> usize {
    slots / tile_slots + experts + 1
}

#[cfg(test)]
mod tests {
    use super::{lanes, most_slot_tiles};
    use crate::gpu::DeviceFacts;

    #[test]
    fn lanes_follow_the_row_and_the_device() {
        let floor = DeviceFacts::floor();
        let wide = |n| DeviceFacts { subgroups: Some((n, n)), ..DeviceFacts::floor() };
        for (units, facts, wanted) in [
            (88, &floor, 32),
            (88, &wide(64), 32),
            (88, &wide(8), 8),
            (24, &floor, 32),
            (22, &floor, 8),
            (22, &wide(4), 4),
            (1, &floor, 1),
            (3, &wide(32), 4),
        ] {
            assert_eq!(lanes(units, facts), wanted, "{units} units");
        }
    }

    #[test]
    fn the_grid_covers_the_worst_choice_of_experts() {
        // However slots are distributed, each expert's tiles begin after those of the expert before.
        for (slots, experts, tile) in
            [(1_usize, 128, 32), (4096, 128, 32), (512, 128, 8), (64, 1, 32)]
        {
            for uneven in [1, 3, 7, slots] {
                let (mut slot, mut end) = (0_usize, 0_usize);
                for expert in 0..=experts {
                    let first = slot / tile + expert;
                    assert!(first >= end, "{slots} slots, {experts} experts, tiles of {tile}");
                    let count =
                        ((expert + 1) * uneven % (2 * slots / (experts + 1) + 2)).min(slots - slot);
                    (slot, end) = (slot + count, first + count.div_ceil(tile));
                }
                assert!(end <= most_slot_tiles(slots, experts, tile), "{slots} slots");
            }
        }
    }
}
