//! A forward pass as a graph of operations, which runs on WebGPU or on the CPU reference of each operation.

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
