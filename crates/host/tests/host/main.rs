//! The engine behind the server: real models on the CPU, requests over HTTP.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too, fail by panicking")]

mod batching;
mod constraints;
mod families;
mod generation;
mod memory;
mod server;
