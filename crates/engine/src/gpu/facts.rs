//! What kernel choice may depend on: plain numbers, so that it can be tested without a device.

/// The syntax in which a device's matrix units are addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixUnits {
    /// A subgroup multiplies matrices of 16 × 16 halves and sums in f32, in wgpu's syntax.
    Wgpu16,
    /// The same in Chromium's syntax.
    Chromium16,
    /// They are not there: every lane computes what they would. Only for tests of kernels.
    Emulated,
}

/// The syntax in which int8 matrix units are addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixInt8 {
    /// A subgroup multiplies matrices of 16 × 32 by 32 × 16 bytes and sums whole numbers, in Chromium's syntax.
    Chromium,
    /// They are not there: every lane computes what they would. Only for tests of kernels.
    Emulated,
}

/// What a device offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// `enable f16;` is accepted.
    pub f16: bool,
    /// Smallest and largest subgroup width, where subgroups are offered.
    pub subgroups: Option<(u32, u32)>,
    /// Units that multiply small matrices. Then `f16` holds, and all subgroups have 32 lanes.
    pub matrix: Option<MatrixUnits>,
    /// Units that multiply small int8 matrices. Then all subgroups have 32 lanes. Used where there are none for f16.
    pub matrix_int8: Option<MatrixInt8>,
    /// Largest storage binding in bytes.
    pub binding_bytes: u64,
    /// Largest buffer in bytes.
    pub buffer_bytes: u64,
    /// Storage buffers a kernel may bind.
    pub storage_buffers: u32,
    /// Invocations in a workgroup.
    pub invocations: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Products of packed bytes are single instructions.
    pub packed_dot: bool,
    /// Lanes that keep enough loads in flight. No API tells it, so it is that of a large device; a small one loses little.
    pub busy_lanes: u32,
    /// Timestamps around passes.
    pub timestamps: bool,
}

impl DeviceFacts {
    /// The least any WebGPU device offers.
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
            busy_lanes: 64 << 10,
            timestamps: false,
        }
    }
}
