//! The launches of a product: one per slab, behind one that prepares x where tiles take halves. One column is a [`Product`]
//! without begin and end.

use rullama_gguf::DType;

use super::choice::{Choice, Team};
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Place},
    graph::Shape,
    ops::{
        Begin, End, Low, Product, Taken,
        parts::{self, UNIT, WEIGHTS, quant},
        product,
        slab::SlabParams,
    },
};

static FEW: Kernel = Kernel { name: "linear/few", source: include_str!("few.wgsl") };
static TILE: Kernel = Kernel { name: "linear/tile", source: include_str!("tile.wgsl") };

pub(super) fn forward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (begin, taken, end) = (Begin::Plain, Taken::All, End::Plain);
    let plain = Product { begin, taken, end, low: Low::None };
    if let Some(launches) = product::vector(&plain, call) {
        return launches;
    }
    let (x, slabs) = (&call.input(0).shape, call.slabs(1));
    let choice =
        |slab: usize| Choice::new(x.rows(), slabs.rows[slab].len(), slabs.row_units(), call.facts);
    let launch = |slab| {
        let choice = choice(slab);
        let groups = choice.groups(x.rows(), slabs.rows[slab].len());
        let x_at = match choice {
            Choice::Tile(tile) => tile.columns_at(x, slabs.row_units()),
            _ => Place::Input(0),
        };
        launch(choice, x, (slabs.dtype, groups), call.facts)
            .part(&WEIGHTS)
            .part(quant(slabs.dtype))
            .params(&SlabParams::new(&slabs, slab, &call.input(1).shape, x.rows()))
            .read(Place::Slab(1, slab))
            .read(x_at)
            .write(Place::Output(0))
            .grid_over(groups)
    };
    let prepared = match choice(0) {
        Choice::Tile(tile) => tile.prepare(call, &slabs),
        _ => None,
    };
    prepared.into_iter().chain((0..slabs.rows.len()).map(launch)).collect()
}

/// The kernel with its constants and the parts only it needs.
fn launch(choice: Choice, x: &Shape, weights: (DType, usize), facts: &DeviceFacts) -> Dispatch {
    let teams = |kernel, team: Team| {
        Dispatch::new(kernel)
            .part(&UNIT)
            .part(parts::team(facts))
            .part(parts::columns(x.width()))
            .constant("WG", team.group() as u32)
            .constant("LANES", team.lanes as u32)
            .constant("SPLIT", team.split as u32)
    };
    match choice {
        Choice::Few { team } => teams(&FEW, team).constant("COLUMNS", x.rows() as u32),
        Choice::Tile(tile) => tile.launch(&TILE, x.width(), weights),
    }
}
