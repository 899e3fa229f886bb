//! Parameters that change between runs of the same plan.

use bytemuck::{Pod, Zeroable};

/// The parameters of one run, in a uniform that every kernel can read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Step {
    /// Position of the first token of this run.
    pub position: u32,
    /// Tokens in this run; a plan built for more ignores the rest.
    pub count: u32,
    /// Seed of this run's random numbers.
    pub seed: u32,
    /// Zero: uniforms are multiples of 16 bytes.
    pub reserved: u32,
}
