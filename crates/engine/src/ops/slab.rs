//! Parameters of kernels that read a slab of a weight.

use bytemuck::NoUninit;

use crate::{
    gpu::{Part, Slabs},
    graph::Shape,
};

/// [`SlabParams`] in WGSL, as the first members of a kernel's parameters.
pub(crate) static SLAB: &Part = shared_part!("slab", "members");

/// The first members of such a kernel's parameters.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
pub(crate) struct SlabParams {
    /// Word offsets of the planes.
    planes: [u32; 4],
    /// Row width.
    width: u32,
    /// Units per row.
    row_units: u32,
    /// Rows of the slab.
    rows: u32,
    /// The slab's first row in the weight.
    first_row: u32,
    /// Rows of the weight.
    all_rows: u32,
    /// Columns of the matmul, or ids.
    count: u32,
}

impl SlabParams {
    /// For slab `slab` of a weight of this shape, and `count` columns or ids.
    pub(crate) fn new(slabs: &Slabs, slab: usize, weight: &Shape, count: usize) -> Self {
        let word = |n: usize| u32::try_from(n).expect("sizes of one weight fit 32 bits");
        Self {
            planes: slabs.planes(slab),
            width: word(weight.width()),
            row_units: word(slabs.row_units()),
            rows: word(slabs.rows[slab].len()),
            first_row: word(slabs.rows[slab].start),
            all_rows: word(weight.rows()),
            count: word(count),
        }
    }

    /// For `count` columns of `width` floats, without a weight.
    pub(crate) fn plain(width: usize, count: usize) -> Self {
        let word = |n: usize| u32::try_from(n).expect("sizes of one value fit 32 bits");
        Self {
            planes: [0; 4],
            width: word(width),
            row_units: word(width.div_ceil(32)),
            rows: 0,
            first_row: 0,
            all_rows: 0,
            count: word(count),
        }
    }
}
