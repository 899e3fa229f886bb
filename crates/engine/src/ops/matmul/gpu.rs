//! Tiles of 16 by 16 results, or a workgroup for each result where there are few and the sums are long.

use bytemuck::NoUninit;

use super::{Layout, Matmul};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place},
    ops::{
        parts::reduce,
        split_k::{add_up, chunks, parts_at},
    },
};

static TILE: Kernel = Kernel { name: "matmul/tile", source: include_str!("tile.wgsl") };
static DOT: Kernel = Kernel { name: "matmul/dot", source: include_str!("dot.wgsl") };
static BASED: Part = Part { kind: "base", name: "based", source: include_str!("base/based.wgsl") };
static PLAIN: Part = Part { kind: "base", name: "plain", source: include_str!("base/plain.wgsl") };

/// Results in a row or column of a tile.
const SIDE: usize = 16;
/// Terms of a sum that are worth a workgroup of their own.
const LEAST_CHUNK: usize = 512;
/// Lanes that share one result.
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
}

pub(super) fn forward(op: &Matmul, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let layout = op.layout(call.input(0), call.input(1));
    let based = call.inputs() > 2;
    let (results, output) = (layout.m * layout.n, Place::Output(0));
    let (dispatch, shared) = match Choice::new(&layout) {
        Choice::Dot => {
            let dispatch = Dispatch::new(&DOT).part(reduce(call.facts)).constant("WG", LANES);
            (dispatch.grid_over(results), 1)
        }
        Choice::Tile => {
            let tiles = layout.m.div_ceil(SIDE) * layout.n.div_ceil(SIDE);
            // What is given is added once.
            let shared = if based { 1 } else { chunks(tiles, layout.k, LEAST_CHUNK) };
            (Dispatch::new(&TILE).grid_over(tiles * shared), shared)
        }
    };
    let parts = if shared > 1 { parts_at(0, results, shared) } else { output };
    let dispatch = dispatch
        .part(if based { &BASED } else { &PLAIN })
        .params(&params(&layout, op.scale, shared))
        .read(Place::Input(0))
        .read(Place::Input(1))
        .write(parts);
    let product = if based { dispatch.read(Place::Input(2)) } else { dispatch };
    let sum = (shared > 1).then(|| add_up(parts, results, shared, output));
    [product].into_iter().chain(sum).collect()
}

fn params(layout: &Layout, scale: f32, chunks: usize) -> Params {
    let word = |n: usize| u32::try_from(n).expect("sizes of one value fit 32 bits");
    Params {
        m: word(layout.m),
        n: word(layout.n),
        k: word(layout.k),
        a_m: word(layout.a[0]),
        a_k: word(layout.a[1]),
        b_n: word(layout.b[0]),
        b_k: word(layout.b[1]),
        scale,
        chunks: word(chunks),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Tile,
    Dot,
}

impl Choice {
    fn new(layout: &Layout) -> Self {
        // Tiles of few results leave a device idle while each walks a long sum alone.
        let few = layout.m.div_ceil(SIDE) * layout.n.div_ceil(SIDE) <= 32;
        let adjacent = layout.a[1] == 1 && layout.b[1] == 1;
        if few && adjacent && layout.k >= 128 { Self::Dot } else { Self::Tile }
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Layout};

    #[test]
    fn few_long_sums_get_a_workgroup_each() {
        let nt = |m, n, k| Choice::new(&Layout { m, n, k, a: [k, 1], b: [k, 1] });
        assert_eq!(nt(1, 16, 1536), Choice::Dot);
        assert_eq!(nt(1, 1536, 16), Choice::Tile);
        assert_eq!(nt(512, 16, 1536), Choice::Dot);
        assert_eq!(nt(512, 1536, 1536), Choice::Tile);
        let tn = Layout { m: 16, n: 16, k: 512, a: [1, 16], b: [1, 16] };
        assert_eq!(Choice::new(&tn), Choice::Tile);
    }
}
