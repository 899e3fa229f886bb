//! Output clamps of a GEMM, by ranges of the weight's rows.

use bytemuck::NoUninit;

use crate::gpu::Part;

/// Up to three ranges of rows, each with the version of x that it reads and its clamp; empty without clamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, NoUninit)]
#[repr(C)]
pub(in crate::ops::matmul) struct ClampRanges {
    /// Ends of the ranges.
    rows: [u32; 3],
    /// Versions of x.
    versions: [u32; 3],
    least: [f32; 3],
    most: [f32; 3],
}

impl ClampRanges {
    /// Sets the clamp of range `i`, which ends before row `end` and reads version `version` of x.
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
