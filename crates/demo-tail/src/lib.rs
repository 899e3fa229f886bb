//! The second half of rullama's demo model. Use the crate `rullama-demo`, which has the whole model: registries limit the size of a
//! package, so the file is in two.

/// The bytes of the file after those of `rullama-demo`.
pub const BYTES: &[u8] = include_bytes!("../demo-2.bin");
