//! JavaScript bindings: conversions only, no logic.

mod panic;
mod suite;

pub use suite::OpSuite;
