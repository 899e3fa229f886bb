//! Every kernel × variant through a browser's compiler.

use anyhow::Result;

use crate::command::{root, sh, sh_in, target};

pub(crate) fn check() -> Result<()> {
    let folder = target().join("wgsl").display().to_string();
    // The whole workspace with all features, as in the tests, to avoid a second build of the dependencies.
    sh("cargo", &["build", "--workspace", "--all-features", "--example", "wgsl"])?;
    let program = target().join("debug/examples/wgsl").display().to_string();
    sh(&program, &[&folder])?;
    sh_in(&root().join("web"), "node", &["tools/check-wgsl.mjs", &folder])
}
