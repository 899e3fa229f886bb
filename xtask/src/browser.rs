//! The op suite in a browser.

use anyhow::Result;

use crate::{
    command::{root, sh_in},
    wasm,
};

pub(crate) fn ops() -> Result<()> {
    wasm::build()?;
    sh_in(&root().join("web"), "node", &["tools/run-ops.mjs"])
}
