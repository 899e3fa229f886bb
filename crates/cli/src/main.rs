//! The `rullama` program.
fn main() {}
