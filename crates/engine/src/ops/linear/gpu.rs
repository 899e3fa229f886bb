//! The launches of a product: one per slab. One column is a [`Product`] without begin and end.

use super::choice::{Choice, Team};
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Place},
    ops::{
        Begin, End, Product,
        parts::{self, UNIT, WEIGHTS, quant},
        product,
        slab::SlabParams,
    },
};

static FEW: Kernel = Kernel { name: "linear/few", source: include_str!("few.wgsl") };
static TILE: Kernel = Kernel { name: "linear/tile", source: include_str!("tile.wgsl") };

pub(super) fn forward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let plain = Product { begin: Begin::Plain, end: End::Plain };
    if let Some(launches) = product::vector(&plain, call) {
        return launches;
    }
    let (x, slabs) = (&call.input(0).shape, call.slabs(1));
    (0..slabs.rows.len())
        .map(|slab| {
            let rows = slabs.rows[slab].len();
            let choice = Choice::new(x.rows(), rows, slabs.row_units(), call.facts);
            launch(choice, x.rows(), call.facts)
                .part(&WEIGHTS)
                .part(quant(slabs.dtype))
                .part(parts::columns(x.width()))
                .params(&SlabParams::new(&slabs, slab, &call.input(1).shape, x.rows()))
                .read(Place::Slab(1, slab))
                .read(Place::Input(0))
                .write(Place::Output(0))
                .grid_over(choice.groups(x.rows(), rows))
        })
        .collect()
}

/// The kernel with its constants and the parts only it needs.
fn launch(choice: Choice, columns: usize, facts: &DeviceFacts) -> Dispatch {
    let teams = |kernel, team: Team| {
        Dispatch::new(kernel)
            .part(&UNIT)
            .part(parts::team(facts))
            .constant("WG", team.group() as u32)
            .constant("LANES", team.lanes as u32)
            .constant("SPLIT", team.split as u32)
    };
    match choice {
        Choice::Few { team } => teams(&FEW, team).constant("COLUMNS", columns as u32),
        Choice::Tile { columns } => Dispatch::new(&TILE)
            .constant("COLUMNS", columns as u32)
            .constant("WG", columns as u32 * 4),
    }
}
