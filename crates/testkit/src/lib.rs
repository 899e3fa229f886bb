//! Helpers for tests: the golden files of this repository, model stores, and entry points that take any bytes.
//!
//! A dev-dependency only. Everything panics on failure: a fixture that cannot be read means a broken checkout, and a
//! violated invariant of an entry point is a bug.

mod demo;
pub mod entry;
mod golden;
mod store;

pub use demo::{DemoAnswer, DemoCase, FileKind, demo_cases, demo_fixtures, demo_media, demo_model};
pub use golden::{golden, golden_path, real_vocabulary, smollm2_vocabulary};
pub use store::StoreFolder;
