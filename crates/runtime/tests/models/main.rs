//! Whole models against reference outputs of independent implementations, on the CPU and on every GPU.

mod adapters;
mod answers;
mod chunks;
mod counts;
mod experts;
mod files;
mod golden;
mod hearing;
mod hostile;
#[cfg(feature = "json")]
mod json;
mod media;
mod parity;
mod sessions;
mod taps;
mod vision;
