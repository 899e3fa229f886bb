//! What tiles take, and limits of what they give, by rows of the weight.

use bytemuck::NoUninit;

use crate::gpu::Part;

/// Up to three ranges of rows, each with its version of the columns and its limits; none where nothing was limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, NoUninit)]
#[repr(C)]
pub(crate) struct Ends {
    /// Where the ranges end.
    rows: [u32; 3],
    /// Which version of the columns they take.
    versions: [u32; 3],
    least: [f32; 3],
    most: [f32; 3],
}

impl Ends {
    /// Limits range `i`, which ends before this row and takes that version of the columns.
    pub(crate) fn limit(&mut self, i: usize, end: usize, version: usize, [least, most]: [f32; 2]) {
        self.rows[i] = u32::try_from(end).expect("rows of a weight fit 32 bits");
        self.versions[i] = version as u32;
        (self.least[i], self.most[i]) = (least, most);
    }

    /// What the tiles' kernel does with them.
    pub(super) fn part(&self) -> &'static Part {
        static FREE: Part =
            Part { kind: "ends", name: "ends/free", source: include_str!("ends/free.wgsl") };
        static LIMITED: Part =
            Part { kind: "ends", name: "ends/limited", source: include_str!("ends/limited.wgsl") };
        if self.rows[0] > 0 { &LIMITED } else { &FREE }
    }
}
