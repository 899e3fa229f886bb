//! Adapters that learn: against reference gradients and loss curves, on the CPU and on GPUs, and by what they learn.

mod data;
mod golden;
mod learning;
mod parity;
mod resuming;
