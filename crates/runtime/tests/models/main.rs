//! Whole models against reference outputs of independent implementations, on the CPU and on every GPU.

mod adapters;
mod answers;
mod audio;
#[cfg(feature = "json")]
mod batching;
mod batching_adapters;
#[cfg(feature = "json")]
mod batching_faults;
#[cfg(feature = "json")]
mod batching_rows;
mod batching_sessions;
mod changed;
mod chunks;
mod counts;
mod demo;
mod denoise;
mod direct;
mod drafts;
mod embeddings;
mod encoders;
mod expert_adapters;
mod experts;
mod files;
mod golden;
mod hostile;
mod inside;
#[cfg(feature = "json")]
mod json;
mod media;
mod mixed;
mod parity;
mod row_order;
mod sessions;
mod siglip;
mod taps;
mod template;
mod vision;
