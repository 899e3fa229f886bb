//! Flash attention of encoders: all live tokens of a pass attend to each other, without a KV cache.

pub(super) mod flash;
pub(super) mod flash_matrix;
pub(super) mod pack;
