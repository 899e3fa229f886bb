//! Benchmarks that need more than CI should build.

use anyhow::{Result, bail};

use crate::command::{root, sh_in};

pub(crate) fn bench(name: &str) -> Result<()> {
    let dir = root().join("bench").join(name);
    if !dir.join("Cargo.toml").is_file() {
        bail!("there is no benchmark `{name}`; see the folders of `bench/`");
    }
    sh_in(&dir, "cargo", &["run", "--release"])
}
