//! Every kernel × variant through a browser's compiler.

use anyhow::Result;

use crate::command::{root, sh, sh_in, target};

pub(crate) fn check() -> Result<()> {
    let folder = target().join("wgsl").display().to_string();
    sh("cargo", &["run", "--quiet", "-p", "rullama-engine", "--example", "wgsl", "--", &folder])?;
    sh_in(&root().join("web"), "node", &["tools/check-wgsl.mjs", &folder])
}
