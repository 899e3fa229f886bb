//! Whole models against reference outputs of independent implementations, on the CPU and on every GPU.

mod golden;
mod parity;
