//! Kernels for narrow operands; otherwise tiles of results, four by four of them per lane, or one workgroup per result if there are few and the sums are long.

use bytemuck::NoUninit;

use super::{Form, Matmul, Strides, narrow::NarrowForm};
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, GpuCall, Kernel},
    ops::{
        parts::reduce,
        split_k::{Base, add_up_onto, chunks, parts_at},
    },
};

static TILE: Kernel = Kernel { name: "matmul/dense_tile", source: include_str!("tile.wgsl") };
static DOT: Kernel = Kernel { name: "matmul/dense_dot", source: include_str!("dot.wgsl") };

/// Minimum terms of a split-K chunk.
const LEAST_CHUNK: usize = 256;
/// Lanes that compute one result.
const LANES: u32 = 64;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    m: u32,
    n: u32,
    k: u32,
    a_m: u32,
    a_k: u32,
    b_n: u32,
    b_k: u32,
    scale: f32,
    chunks: u32,
    a_first: u32,
    y_row: u32,
    y_first: u32,
}

/// The buffers of a matmul.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops::matmul) struct Operands {
    pub(in crate::ops::matmul) a: BufferRef,
    pub(in crate::ops::matmul) b: BufferRef,
    pub(in crate::ops::matmul) base: Base,
    pub(in crate::ops::matmul) output: BufferRef,
}

pub(super) fn forward(op: &Matmul, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let base = match call.inputs() {
        0..=2 => Base::None,
        _ => Base::Added(BufferRef::Input(2)),
    };
    of_inputs(op, call, base, BufferRef::Output(0))
}

/// Adds the matmul to its third input, a state.
pub(super) fn accumulate(op: &Matmul, call: &GpuCall<'_>) -> Vec<Dispatch> {
    of_inputs(op, call, Base::Own, BufferRef::Input(2))
}

fn of_inputs(op: &Matmul, call: &GpuCall<'_>, base: Base, output: BufferRef) -> Vec<Dispatch> {
    let strides = op.strides(call.input(0), call.input(1));
    let operands = Operands { a: BufferRef::Input(0), b: BufferRef::Input(1), base, output };
    dispatches((op.form, op.scale), &strides, &operands, call.facts)
}

/// `[t, r] · [columns, r]ᵀ`, scaled, added to some columns of a base `[t, width]` and stored in the same columns of the output.
pub(in crate::ops::matmul) fn update_columns(
    [t, r]: [usize; 2],
    (first, columns, width): (usize, usize, usize),
    scale: f32,
    operands: &Operands,
    facts: &DeviceFacts,
) -> Vec<Dispatch> {
    let (a, b, y) = ([r, 1], [r, 1], [width, first]);
    let strides = Strides { m: t, n: columns, k: r, a, a_first: 0, b, y };
    dispatches((Form::Nt, scale), &strides, operands, facts)
}

fn dispatches(
    (form, scale): (Form, f32),
    strides: &Strides,
    operands: &Operands,
    facts: &DeviceFacts,
) -> Vec<Dispatch> {
    let dense = DenseForm::new(strides);
    if let Some(narrow) = NarrowForm::new(form, strides).filter(|_| dense == DenseForm::Tile) {
        return narrow.dispatches(form, strides, scale, operands);
    }
    let results = strides.m * strides.n;
    let (dispatch, shared) = match dense {
        DenseForm::Dot => {
            let dispatch = Dispatch::new(&DOT).part(reduce(facts)).constant("WG", LANES);
            (dispatch.grid_over(results), 1)
        }
        DenseForm::Tile => {
            let tile = DenseTile::new(strides);
            let tiles = strides.m.div_ceil(tile.rows) * strides.n.div_ceil(tile.columns);
            // Partial sums are of whole results.
            let most = if strides.is_whole() { usize::MAX } else { 1 };
            let shared = chunks(tiles, strides.k, LEAST_CHUNK).min(most);
            (tile.dispatch().grid_over(tiles * shared), shared)
        }
    };
    let Operands { a, b, base, output } = *operands;
    let is_split = shared > 1;
    let partials = if is_split { parts_at(0, results, shared) } else { output };
    let dispatch = dispatch.params(&params(strides, scale, shared)).read(a).read(b).write(partials);
    // The base must be added only once.
    let matmul = if is_split { Base::None } else { base }.composed(dispatch);
    let sum = is_split.then(|| add_up_onto(base, partials, results, shared, output));
    [matmul].into_iter().chain(sum).collect()
}

/// The shape of a tile; 256 lanes compute 4 × 4 results each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DenseTile {
    rows: usize,
    columns: usize,
    /// Terms that are staged at a time.
    depth: usize,
    /// Teams of lanes that share the terms.
    teams: usize,
}

impl DenseTile {
    /// Rows or columns of a narrow matrix, such as the rank of a LoRA pair.
    const NARROW: usize = 16;

    fn new(strides: &Strides) -> Self {
        match (strides.m <= Self::NARROW, strides.n <= Self::NARROW) {
            (false, false) => Self { rows: 64, columns: 64, depth: 16, teams: 1 },
            (_, true) => Self { rows: 32, columns: 16, depth: 64, teams: 8 },
            (true, false) => Self { rows: 16, columns: 32, depth: 64, teams: 8 },
        }
    }

    fn dispatch(self) -> Dispatch {
        let Self { rows, columns, depth, teams } = self;
        Dispatch::new(&TILE)
            .constant("ROWS", rows as u32)
            .constant("COLUMNS", columns as u32)
            .constant("DEPTH", depth as u32)
            .constant("TEAMS", teams as u32)
            .constant("WG", (rows * columns / 16 * teams) as u32)
    }
}

/// A size as the kernels' parameters hold it.
pub(super) fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of one value fit 32 bits")
}

fn params(strides: &Strides, scale: f32, chunks: usize) -> Params {
    Params {
        m: word(strides.m),
        n: word(strides.n),
        k: word(strides.k),
        a_m: word(strides.a[0]),
        a_k: word(strides.a[1]),
        b_n: word(strides.b[0]),
        b_k: word(strides.b[1]),
        scale,
        chunks: word(chunks),
        a_first: word(strides.a_first),
        y_row: word(strides.y[0]),
        y_first: word(strides.y[1]),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DenseForm {
    Tile,
    Dot,
}

impl DenseForm {
    fn new(strides: &Strides) -> Self {
        // Few tiles leave a large device idle while each computes long sums alone.
        let few = strides.m * strides.n <= 1024;
        let adjacent = strides.a[1] == 1 && strides.b[1] == 1;
        if few && adjacent && strides.is_whole() && strides.k >= 128 {
            Self::Dot
        } else {
            Self::Tile
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DenseForm, DenseTile, Strides};

    #[test]
    fn narrow_results_are_shared_by_teams() {
        for (m, n, wanted) in
            [(64, 64, [64, 64, 1]), (512, 16, [32, 16, 8]), (16, 512, [16, 32, 8])]
        {
            let tile = DenseTile::new(&Strides::whole([m, n, 512], [512, 1], [512, 1]));
            assert_eq!([tile.rows, tile.columns, tile.teams], wanted, "{m} × {n}");
            assert_eq!(tile.rows * tile.columns / 16 * tile.teams, 256, "{m} × {n}");
            // Staged terms have room for the sums of half of the teams.
            let staged = tile.depth * (tile.rows + tile.columns);
            assert!(staged >= tile.rows * tile.columns * (tile.teams / 2), "{m} × {n}");
            assert!(staged * 4 <= 16 << 10, "{m} × {n}");
        }
    }

    #[test]
    fn few_long_sums_get_a_workgroup_each() {
        let nt = |m, n, k| DenseForm::new(&Strides::whole([m, n, k], [k, 1], [k, 1]));
        assert_eq!(nt(1, 16, 1536), DenseForm::Dot);
        assert_eq!(nt(1, 1536, 16), DenseForm::Tile);
        assert_eq!(nt(64, 16, 1536), DenseForm::Dot);
        assert_eq!(nt(512, 16, 1536), DenseForm::Tile);
        assert_eq!(nt(512, 1536, 1536), DenseForm::Tile);
        let tn = Strides::whole([16, 16, 512], [1, 16], [1, 16]);
        assert_eq!(DenseForm::new(&tn), DenseForm::Tile);
    }
}
