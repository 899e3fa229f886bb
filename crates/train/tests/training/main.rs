//! Training: gradients and loss curves against references, on the CPU and on GPUs, and what adapters learn.

mod data;
mod families;
mod golden;
mod learning;
mod parity;
mod resuming;
