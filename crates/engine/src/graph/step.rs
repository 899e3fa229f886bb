//! What changes between two runs of the same plan.

use bytemuck::{Pod, Zeroable};

/// The numbers of one run, in a uniform every kernel can see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Step {
    /// Position of the first token of this run.
    pub position: u32,
    /// Tokens in this run; a plan made for more ignores the rest.
    pub count: u32,
    /// Seed of this run's random numbers.
    pub seed: u32,
    /// Kept zero: uniforms come in 16 bytes.
    pub reserved: u32,
}
