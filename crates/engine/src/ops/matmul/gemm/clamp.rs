//! Clamped output rows of a GEMM, by ranges of the weight's rows.

use bytemuck::NoUninit;

use crate::gpu::Part;

/// Up to three ranges of rows, each with its version of the columns and its clamp; none where nothing is clamped.
#[derive(Debug, Clone, Copy, Default, PartialEq, NoUninit)]
#[repr(C)]
pub(in crate::ops::matmul) struct ClampRanges {
    /// Where the ranges end.
    rows: [u32; 3],
    /// Which version of the columns they take.
    versions: [u32; 3],
    least: [f32; 3],
    most: [f32; 3],
}

impl ClampRanges {
    /// Clamps range `i`, which ends before this row and takes that version of the columns.
    pub(in crate::ops::matmul) fn clamp(
        &mut self,
        i: usize,
        end: usize,
        version: usize,
        [least, most]: [f32; 2],
    ) {
        self.rows[i] = u32::try_from(end).expect("rows of a weight fit 32 bits");
        self.versions[i] = version as u32;
        (self.least[i], self.most[i]) = (least, most);
    }

    /// The part that applies them.
    pub(super) fn part(&self) -> &'static Part {
        match self.rows[0] > 0 {
            true => part!("clamp", "ranges"),
            false => part!("clamp", "none"),
        }
    }
}
