//! Stores built in temporary folders: good ones, old ones, broken ones.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod broken;
mod builder;
mod list;
mod names;
mod resolve;
mod verify;
