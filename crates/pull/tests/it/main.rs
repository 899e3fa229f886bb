//! Pulling, creating, copying and deleting, against a local mock registry.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod auth;
mod faults;
mod hub;
mod joined;
mod pull;
#[allow(dead_code, reason = "the kill tests use other parts of it")]
mod registry;
mod setup;
mod write;
