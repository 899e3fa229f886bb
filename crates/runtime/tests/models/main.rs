//! Whole models against reference outputs of independent implementations, on the CPU and on every GPU.

mod answers;
mod chunks;
mod counts;
mod experts;
mod golden;
mod hostile;
mod parity;
#[cfg(feature = "json")]
mod json;
mod sessions;
mod taps;
