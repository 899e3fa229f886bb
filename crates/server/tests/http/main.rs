//! The server from outside: bytes over a socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too, fail by panicking")]

mod access;
mod blobs;
mod client;
mod doors;
mod end;
mod fake;
mod files;
mod generation;
mod limits;
mod listing;
mod managing;
mod paths;
mod queueing;
mod running;
