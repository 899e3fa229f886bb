//! Two dispatches for many rows: the first prepares x, the second is a GEMM.

use std::ops::Range;

use bytemuck::NoUninit;

use super::{Clamp, ClampedLinear, ClampedPrologue, MAX_STACKED};
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Slabs},
    graph::Shape,
    ops::{
        matmul::{
            gemm::{ClampRanges, Gemm, Tile},
            select::{self, Form},
        },
        parts::{self, GELU, WEIGHTS, quant},
        slab::{SLAB, SlabParams},
    },
};

static PREPARE: Kernel =
    Kernel { name: "matmul/clamped_prepare", source: include_str!("prepare.wgsl") };
/// Lanes of the workgroup that prepares a column.
const GROUP: u32 = 256;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    slab: SlabParams,
    eps: f32,
    scaled: u32,
    versions: u32,
    least: [f32; MAX_STACKED],
    most: [f32; MAX_STACKED],
}

/// `None` for up to 8 tokens, rows whose width is not a multiple of 4, and tensors that are not whole tiles where tensors read different
/// clamped versions of `x`: the operations this one stands for compute those.
pub(super) fn forward(op: &ClampedLinear, call: &GpuCall<'_>) -> Option<Vec<Dispatch>> {
    let at = op.prologue.inputs();
    let (weight, slabs) = (&call.input(at).shape, call.slabs(at));
    let x = Shape::from([call.input(0).shape.rows(), weight.width()]);
    let output = usize::from(op.adds_residual());
    let gemm = Gemm { x: &x, weight: at, output, clamp: op.clamp_ranges() };
    let shape = select::Shape::of_slab(&x, &slabs, 0);
    let Form::Gemm(tile) = Form::new(&shape, call.facts) else { return None };
    if !weight.width().is_multiple_of(4) {
        return None;
    }
    if !op.is_whole(tile, &slabs) {
        return None;
    }
    let buffer = columns(tile, &x, op.versions().len(), &slabs);
    let prepared = prepare(op, (tile, buffer), (&x, &slabs), call);
    let dispatches =
        (0..slabs.rows.len()).map(|slab| gemm.dispatch(tile, (&slabs, slab), buffer, call));
    Some([prepared].into_iter().chain(dispatches).collect())
}

/// The buffer with all versions of the columns, as f32 for tiles without matrix units. Each version begins at a block of sixteen columns.
fn columns(tile: Tile, x: &Shape, versions: usize, slabs: &Slabs) -> BufferRef {
    let before = (versions - 1) * x.rows().next_multiple_of(16);
    let all = Shape::from([before + x.rows(), x.width()]);
    match tile {
        Tile::Scalar { .. } => BufferRef::Scratch(0, all.len() as u64 * 4),
        Tile::Matrix(..) | Tile::Int8 { .. } => tile.columns_buffer(&all, slabs.row_units()),
    }
}

fn prepare(
    op: &ClampedLinear,
    (tile, buffer): (Tile, BufferRef),
    (x, slabs): (&Shape, &Slabs),
    call: &GpuCall<'_>,
) -> Dispatch {
    let at = op.prologue.inputs();
    let (eps, scaled) = match &op.prologue {
        ClampedPrologue::Norm { eps, .. } => (*eps, false),
        ClampedPrologue::ResidualAdd { branch, eps, .. } => (*eps, branch.scale.is_some()),
        ClampedPrologue::Rows(_)
        | ClampedPrologue::Geglu(_)
        | ClampedPrologue::Gated(..)
        | ClampedPrologue::Silu(_) => (0.0, false),
    };
    let slab = SlabParams::new(slabs, 0, &call.input(at).shape, x.rows());
    let versions = op.versions();
    let limits = |i: usize| versions.get(i).unwrap_or(&Clamp::NONE).finite();
    let params = Params {
        slab,
        eps,
        scaled: u32::from(scaled),
        versions: versions.len() as u32,
        least: std::array::from_fn(|i| limits(i)[0]),
        most: std::array::from_fn(|i| limits(i)[1]),
    };
    let dispatch = tile
        .with_prepare(Dispatch::new(&PREPARE))
        .part(SLAB)
        .part(WEIGHTS)
        .part(quant(slabs.dtype))
        .part(parts::reduce(call.facts))
        .constant("WG", GROUP)
        .params(&params)
        // The weight's format decides the order within columns; the weight itself is read only if it is quantised, too.
        .read(BufferRef::Slab(at, 0))
        .read(BufferRef::Input(0))
        .write(buffer)
        .grid_over(tile.prepared_lines(x.rows()));
    match &op.prologue {
        ClampedPrologue::Rows(_) => dispatch.part(part!("prologue", "plain")),
        ClampedPrologue::Geglu(_) => dispatch.part(part!("prologue", "geglu")).part(GELU),
        ClampedPrologue::Gated(..) => {
            dispatch.part(part!("prologue", "gated")).part(GELU).read(BufferRef::Input(1))
        }
        ClampedPrologue::Silu(_) => dispatch.part(part!("prologue", "silu")).part(GELU),
        ClampedPrologue::Norm { .. } => {
            dispatch.part(part!("prologue", "norm")).read(BufferRef::Input(1))
        }
        ClampedPrologue::ResidualAdd { branch, next, .. } => {
            assert!(branch.post_norm, "branches of clamped layers are normed");
            dispatch
                .part(part!("prologue", "residual_add"))
                .read(BufferRef::Input(branch.branch))
                .read(BufferRef::Input(branch.weight))
                // Without a scale the weight is bound in its place and not read.
                .read(BufferRef::Input(branch.scale.unwrap_or(branch.weight)))
                .read(BufferRef::Input(*next))
                .write(BufferRef::Output(0))
        }
    }
}

impl ClampedLinear {
    /// Whether the residual stream is its first result.
    fn adds_residual(&self) -> bool {
        matches!(self.prologue, ClampedPrologue::ResidualAdd { .. })
    }

    /// The ranges of rows with the version of x that each tensor reads and its output clamp, as GEMM kernels take them.
    fn clamp_ranges(&self) -> ClampRanges {
        let mut ranges = ClampRanges::default();
        let mut end = 0;
        for (i, tensor) in self.stacked.iter().enumerate() {
            end += tensor.rows;
            ranges.clamp(i, end, self.version(tensor), tensor.output.finite());
        }
        ranges
    }

    /// Whether no tile has rows that read different versions of x.
    fn is_whole(&self, tile: Tile, slabs: &Slabs) -> bool {
        let mut end = 0;
        self.stacked.windows(2).all(|two| {
            end += two[0].rows;
            let splits_tile = |slab: &Range<usize>| !(end - slab.start).is_multiple_of(tile.rows());
            let slab = slabs.rows.iter().find(|slab| slab.contains(&end));
            two[0].input == two[1].input || !slab.is_some_and(splits_tile)
        })
    }
}
