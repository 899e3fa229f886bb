//! A forward pass is a graph of operations, and that graph is data: run on WebGPU, or by the CPU reference of each operation.

pub mod cpu;
mod error;
pub mod executor;
pub mod gpu;
pub mod graph;
pub mod ops;
mod precision;
pub mod suite;
mod threads;

pub use error::EngineError;
