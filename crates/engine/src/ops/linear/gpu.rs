//! Which kernel makes a product, and how it is cut into workgroups.

use bytemuck::NoUninit;

use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Place, Slabs},
    ops::parts::{DOT, WEIGHTS, columns, quant, team},
};

static VECTOR: Kernel = Kernel { name: "linear/vector", source: include_str!("vector.wgsl") };

/// Lanes of a workgroup.
const GROUP: usize = 256;
/// Columns one launch of the vector kernel takes.
const MOST_COLUMNS: usize = 8;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    planes: [u32; 4],
    width: u32,
    row_units: u32,
    rows: u32,
    first_row: u32,
    all_rows: u32,
}

pub(super) fn forward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (x, slabs) = (&call.input(0).shape, call.slabs(1));
    let all_rows = call.input(1).shape.rows();
    assert!(x.rows() <= MOST_COLUMNS, "linear takes up to {MOST_COLUMNS} rows for now");
    (0..slabs.rows.len())
        .map(|slab| {
            let rows = slabs.rows[slab].len();
            let choice = Choice::new(rows, slabs.row_units(), call.facts);
            Dispatch::new(&VECTOR)
                .part(&WEIGHTS)
                .part(quant(slabs.dtype))
                .part(columns(x.width()))
                .part(&DOT)
                .part(team(call.facts))
                .constant("LANES", choice.lanes as u32)
                .constant("ROWS", choice.rows as u32)
                .constant("COLUMNS", x.rows() as u32)
                .params(&params(&slabs, slab, x.width(), all_rows))
                .read(Place::Slab(1, slab))
                .read(Place::Input(0))
                .write(Place::Output(0))
                .grid_over(rows.div_ceil(GROUP / choice.lanes * choice.rows))
        })
        .collect()
}

fn params(slabs: &Slabs, slab: usize, width: usize, all_rows: usize) -> Params {
    let word = |n: usize| u32::try_from(n).expect("sizes of one weight fit 32 bits");
    Params {
        planes: slabs.planes(slab),
        width: word(width),
        row_units: word(slabs.row_units()),
        rows: word(slabs.rows[slab].len()),
        first_row: word(slabs.rows[slab].start),
        all_rows: word(all_rows),
    }
}

/// How many lanes share a row, and how many rows they make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    lanes: usize,
    rows: usize,
}

impl Choice {
    fn new(_rows: usize, row_units: usize, facts: &DeviceFacts) -> Self {
        let widest = facts.subgroups.map_or(32, |(least, _)| least.min(32)) as usize;
        // No more lanes than units in a row: the others would only wait.
        let lanes = widest.min(row_units.next_power_of_two());
        Self { lanes, rows: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::Choice;
    use crate::gpu::DeviceFacts;

    #[test]
    fn lanes_follow_the_row_and_the_device() {
        let floor = DeviceFacts::floor();
        let wide = |n| DeviceFacts { subgroups: Some((n, n)), ..DeviceFacts::floor() };
        for (units, facts, lanes) in [
            (48, &floor, 32),
            (384, &wide(64), 32),
            (384, &wide(8), 8),
            (1, &floor, 1),
            (3, &wide(32), 4),
        ] {
            assert_eq!(Choice::new(100, units, facts).lanes, lanes, "{units} units");
        }
    }
}
