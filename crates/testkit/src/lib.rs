//! Help for tests: the golden files of this repository.
//!
//! A dev-dependency only. Everything panics on failure: a fixture that cannot be read is a broken checkout.

mod golden;

pub use golden::{golden, golden_path, real_vocabulary};
