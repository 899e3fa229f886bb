//! The server from outside: bytes over a socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too, fail by panicking")]

mod blobs;
mod client;
mod doors;
mod end;
mod files;
mod limits;
mod listing;
mod paths;
mod running;
