//! Two dispatches for many rows: one makes the columns that the tiles of the other take.

use std::ops::Range;

use bytemuck::NoUninit;

use super::{Clipped, ClippedBegin, Limits, MOST_STACKED};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place, Slabs},
    graph::Shape,
    ops::{
        linear::{Ends, TileProduct},
        parts::{self, ACTIVATION, WEIGHTS, quant},
        slab::{SLAB, SlabParams},
        tile::Tile,
    },
};

static PREPARE: Kernel = Kernel { name: "clipped/prepare", source: include_str!("prepare.wgsl") };
/// Lanes of a workgroup that makes a column.
const GROUP: u32 = 256;

/// A part from this folder.
macro_rules! begin {
    ($name:literal) => {{
        static PART: Part = Part {
            kind: "begin",
            name: concat!("begin/", $name),
            source: include_str!(concat!("begin/", $name, ".wgsl")),
        };
        &PART
    }};
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    slab: SlabParams,
    eps: f32,
    scaled: u32,
    versions: u32,
    least: [f32; MOST_STACKED],
    most: [f32; MOST_STACKED],
}

/// `None` for few rows, such that are not read four numbers at a time, and tensors that are not whole tiles where those take different
/// versions of `x`: the operations this one stands for make those.
pub(super) fn forward(op: &Clipped, call: &GpuCall<'_>) -> Option<Vec<Dispatch>> {
    let at = op.begin.inputs();
    let (weight, slabs) = (&call.input(at).shape, call.slabs(at));
    let x = Shape::from([call.input(0).shape.rows(), weight.width()]);
    let product =
        TileProduct { x: &x, weight: at, output: usize::from(op.begins_stream()), ends: op.ends() };
    let tile = product.tile(&slabs, 0, call.facts).filter(|_| weight.width().is_multiple_of(4))?;
    if !op.is_whole(tile, &slabs) {
        return None;
    }
    let place = columns(tile, &x, op.versions().len(), &slabs);
    let prepared = prepare(op, (tile, place), (&x, &slabs), call);
    let dispatches =
        (0..slabs.rows.len()).map(|slab| product.dispatch(tile, (&slabs, slab), place, call));
    Some([prepared].into_iter().chain(dispatches).collect())
}

/// Where the columns lie, as many versions of them: tiles by plain arithmetic take them as they are. Each version begins with a block of
/// sixteen.
fn columns(tile: Tile, x: &Shape, versions: usize, slabs: &Slabs) -> Place {
    let before = (versions - 1) * x.rows().next_multiple_of(16);
    let all = Shape::from([before + x.rows(), x.width()]);
    match tile {
        Tile::Plain { .. } => Place::Scratch(0, all.len() as u64 * 4),
        Tile::Matrix(..) | Tile::Bytes { .. } => tile.columns_at(&all, slabs.row_units()),
    }
}

fn prepare(
    op: &Clipped,
    (tile, place): (Tile, Place),
    (x, slabs): (&Shape, &Slabs),
    call: &GpuCall<'_>,
) -> Dispatch {
    let at = op.begin.inputs();
    let (eps, scaled) = match &op.begin {
        ClippedBegin::Norm { eps } => (*eps, false),
        ClippedBegin::Added(add) => (add.eps, add.scaled),
        ClippedBegin::Plain | ClippedBegin::Geglu | ClippedBegin::Gated | ClippedBegin::Silu => {
            (0.0, false)
        }
    };
    let slab = SlabParams::new(slabs, 0, &call.input(at).shape, x.rows());
    let versions = op.versions();
    let limits = |i: usize| versions.get(i).unwrap_or(&Limits::NONE).finite();
    let params = Params {
        slab,
        eps,
        scaled: u32::from(scaled),
        versions: versions.len() as u32,
        least: std::array::from_fn(|i| limits(i)[0]),
        most: std::array::from_fn(|i| limits(i)[1]),
    };
    let dispatch = Dispatch::new(&PREPARE)
        .part(&SLAB)
        .part(&WEIGHTS)
        .part(quant(slabs.dtype))
        .part(parts::reduce(call.facts))
        .part(tile.put().unwrap_or_else(parts::put_floats))
        .constant("WG", GROUP)
        .params(&params)
        // Where columns belong is asked of the format; weights are read where they are put, too.
        .read(Place::Slab(at, 0))
        .read(Place::Input(0))
        .write(place)
        .grid_over(tile.puts(x.rows()));
    match &op.begin {
        ClippedBegin::Plain => dispatch.part(begin!("plain")),
        ClippedBegin::Geglu => dispatch.part(begin!("geglu")).part(&ACTIVATION),
        ClippedBegin::Gated => {
            dispatch.part(begin!("gated")).part(&ACTIVATION).read(Place::Input(1))
        }
        ClippedBegin::Silu => dispatch.part(begin!("silu")).part(&ACTIVATION),
        ClippedBegin::Norm { .. } => dispatch.part(begin!("norm")).read(Place::Input(1)),
        ClippedBegin::Added(add) => dispatch
            .part(begin!("added"))
            .read(Place::Input(1))
            .read(Place::Input(2))
            // Without a scale the weight stands in for it, unread.
            .read(Place::Input(add.scale_input().unwrap_or(2)))
            .read(Place::Input(add.next_input().unwrap_or(2)))
            .write(Place::Output(0)),
    }
}

impl Clipped {
    /// Whether the residual stream is its first result.
    fn begins_stream(&self) -> bool {
        matches!(self.begin, ClippedBegin::Added(_))
    }

    /// Which columns tensors take and what they give, as tiles are told.
    fn ends(&self) -> Ends {
        let mut ends = Ends::default();
        let mut end = 0;
        for (i, tensor) in self.stacked.iter().enumerate() {
            end += tensor.rows;
            ends.limit(i, end, self.version(tensor), tensor.gives.finite());
        }
        ends
    }

    /// Whether no tile has rows that take different versions.
    fn is_whole(&self, tile: Tile, slabs: &Slabs) -> bool {
        let mut end = 0;
        self.stacked.windows(2).all(|two| {
            end += two[0].rows;
            let is_cut = |slab: &Range<usize>| !(end - slab.start).is_multiple_of(tile.rows());
            let slab = slabs.rows.iter().find(|slab| slab.contains(&end));
            two[0].takes == two[1].takes || !slab.is_some_and(is_cut)
        })
    }
}
