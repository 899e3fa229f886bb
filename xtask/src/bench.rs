//! Benchmarks that are too large or too slow for CI.

use anyhow::{Result, bail};

use crate::command::{root, sh, sh_in};

pub(crate) fn bench(name: &str) -> Result<()> {
    let dir = root().join("bench").join(name);
    if !dir.join("Cargo.toml").is_file() {
        bail!("there is no benchmark `{name}`; see the folders of `bench/`");
    }
    sh_in(&dir, "cargo", &["run", "--release"])
}

/// Evaluates the demo model on every held-out case; takes minutes on a CPU.
pub(crate) fn demo_eval(options: &[&str]) -> Result<()> {
    let run = ["run", "-p", "rullama-runtime", "--all-features", "--example", "demo_eval", "--"];
    sh("cargo", &[&run, options].concat())
}
