//! The dispatches of a product: one per slab, after one that prepares x where tiles take halves. One column is a [`Product`]
//! without begin and end.

use bytemuck::NoUninit;

use super::{
    choice::{Choice, Team},
    ends::Ends,
};
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Place, Slabs},
    graph::Shape,
    ops::{
        Begin, End, Low, Product, Taken,
        parts::{self, UNIT, WEIGHTS, X_UNIT, quant},
        product,
        slab::{SLAB, SlabParams},
        tile::Tile,
    },
};

static FEW: Kernel = Kernel { name: "linear/few", source: include_str!("few.wgsl") };
static TILE: Kernel = Kernel { name: "linear/tile", source: include_str!("tile.wgsl") };

pub(super) fn forward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (begin, taken, end) = (Begin::Plain, Taken::All, End::Plain);
    let plain = Product { begin, taken, end, low: Low::None };
    if let Some(dispatches) = product::vector(&plain, call) {
        return dispatches;
    }
    let (x, slabs) = (&call.input(0).shape, call.slabs(1));
    let product = TileProduct { x, weight: 1, output: 0, ends: Ends::default() };
    let dispatch = |slab| match choice(x, &slabs, slab, call.facts) {
        Choice::Few { team } => few(team, (&slabs, slab), call),
        Choice::Tile(tile) => {
            let columns = tile.columns_at(x, slabs.row_units());
            product.dispatch(tile, (&slabs, slab), columns, call)
        }
    };
    let prepared = product.tile(&slabs, 0, call.facts).and_then(|tile| tile.prepare(call, &slabs));
    prepared.into_iter().chain((0..slabs.rows.len()).map(dispatch)).collect()
}

fn choice(x: &Shape, slabs: &Slabs, slab: usize, facts: &DeviceFacts) -> Choice {
    let (columns, rows) = (x.rows(), slabs.rows[slab].len());
    let by_bytes = Tile::by_bytes((columns, rows, x.width()), slabs.dtype, facts);
    // Rows are made digits with the columns, all of them at once.
    match by_bytes.filter(|_| slabs.rows.len() == 1) {
        Some(tile) => Choice::Tile(tile),
        None => Choice::new(columns, rows, slabs.row_units(), facts),
    }
}

fn few(team: Team, (slabs, slab): (&Slabs, usize), call: &GpuCall<'_>) -> Dispatch {
    let x = &call.input(0).shape;
    Dispatch::new(&FEW)
        .part(&SLAB)
        .part(&WEIGHTS)
        .part(quant(slabs.dtype))
        .part(&UNIT)
        .part(&X_UNIT)
        .part(parts::team(call.facts))
        .part(parts::columns(x.width()))
        .constant("WG", team.group() as u32)
        .constant("LANES", team.lanes as u32)
        .constant("SPLIT", team.split as u32)
        .constant("COLUMNS", x.rows() as u32)
        .params(&SlabParams::new(slabs, slab, &call.input(1).shape, x.rows()))
        .read(Place::Slab(1, slab))
        .read(Place::Input(0))
        .write(Place::Output(0))
        .grid_over(Choice::Few { team }.groups(x.rows(), slabs.rows[slab].len()))
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct TileParams {
    slab: SlabParams,
    ends: Ends,
}

/// A product by tiles, whatever made its columns.
pub(crate) struct TileProduct<'a> {
    /// Shape of what it takes.
    pub(crate) x: &'a Shape,
    /// Which input the weight is.
    pub(crate) weight: usize,
    /// Which result it makes.
    pub(crate) output: usize,
    /// Limits of that.
    pub(crate) ends: Ends,
}

impl TileProduct<'_> {
    /// The tile for a slab; `None` if there are too few columns for any.
    pub(crate) fn tile(&self, slabs: &Slabs, slab: usize, facts: &DeviceFacts) -> Option<Tile> {
        match choice(self.x, slabs, slab, facts) {
            Choice::Few { .. } => None,
            Choice::Tile(tile) => Some(tile),
        }
    }

    /// The dispatch for a slab, of columns that lie there.
    pub(crate) fn dispatch(
        &self,
        tile: Tile,
        (slabs, slab): (&Slabs, usize),
        columns: Place,
        call: &GpuCall<'_>,
    ) -> Dispatch {
        let groups = tile.groups(self.x.rows(), slabs.rows[slab].len());
        let weight = &call.input(self.weight).shape;
        let slab_params = SlabParams::new(slabs, slab, weight, self.x.rows());
        tile.dispatch_slab(&TILE, self.x.width(), (slabs.dtype, groups))
            .part(&SLAB)
            .part(self.ends.part())
            .params(&TileParams { slab: slab_params, ends: self.ends })
            .read(Place::Slab(self.weight, slab))
            .read(columns)
            .write(Place::Output(self.output))
            .grid_over(groups)
    }
}
