//! Installs what the tests need beyond the toolchain itself.

use anyhow::Result;

use crate::command::{output, sh};

/// The targets every portable crate is built for; the second one also runs their tests.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
pub(crate) const WASI: &str = "wasm32-wasip1";

pub(crate) fn setup() -> Result<()> {
    let targets = output("rustup", &["target", "list", "--installed"])?;
    for target in [WASM, WASI] {
        if !targets.lines().any(|line| line == target) {
            sh("rustup", &["target", "add", target])?;
        }
    }
    let components = output("rustup", &["component", "list", "--installed"])?;
    for component in ["clippy", "rustfmt"] {
        if !components.lines().any(|line| line.starts_with(component)) {
            sh("rustup", &["component", "add", component])?;
        }
    }
    Ok(())
}
