//! The facts that kernel selection may depend on: plain values, so that it can be tested without a device.

use super::Tuning;

/// The syntax of a device's matrix units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixUnits {
    /// A subgroup multiplies 16 × 16 f16 matrices and accumulates in f32, in wgpu's syntax.
    Wgpu16,
    /// The same operation in Chromium's syntax.
    Chromium16,
    /// No matrix units: every lane computes what they would. Only for tests of kernels.
    Emulated,
}

/// The syntax of a device's int8 matrix units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixInt8 {
    /// A subgroup multiplies 16 × 32 by 32 × 16 int8 matrices and accumulates in i32, in Chromium's syntax.
    Chromium,
    /// No matrix units: every lane computes what they would. Only for tests of kernels.
    Emulated,
}

/// The capabilities of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Whether `enable f16;` is accepted.
    pub f16: bool,
    /// Smallest and largest subgroup size, if subgroups are available.
    pub subgroups: Option<(u32, u32)>,
    /// Matrix units. They imply `f16` and subgroups of 32 lanes.
    pub matrix: Option<MatrixUnits>,
    /// Matrix units for int8. They imply subgroups of 32 lanes, and are used only without `matrix`.
    pub matrix_int8: Option<MatrixInt8>,
    /// Largest storage binding in bytes.
    pub binding_bytes: u64,
    /// Largest buffer in bytes.
    pub buffer_bytes: u64,
    /// Storage buffers per kernel.
    pub storage_buffers: u32,
    /// Invocations per workgroup.
    pub invocations: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Whether packed int8 dot products are single instructions.
    pub packed_dot: bool,
    /// How GEMVs divide their work.
    pub tuning: Tuning,
    /// Whether passes can be timed with timestamps.
    pub timestamps: bool,
}

impl DeviceFacts {
    /// The minimum of every WebGPU device.
    pub fn floor() -> Self {
        Self {
            f16: false,
            subgroups: None,
            matrix: None,
            matrix_int8: None,
            binding_bytes: 128 << 20,
            buffer_bytes: 256 << 20,
            storage_buffers: 8,
            invocations: 256,
            workgroup_bytes: 16 << 10,
            packed_dot: false,
            tuning: Tuning::default(),
            timestamps: false,
        }
    }
}
