//! The browser's build: wasm, its JavaScript glue, made small, and its size.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use crate::{
    command::{root, sh, sh_in, target},
    setup::WASM,
};

/// Builds `web/client/src/wasm/`, from which pages import the engine, and prints how large it is.
pub(crate) fn build() -> Result<()> {
    sh("cargo", &["build", "--release", "--target", WASM, "-p", "rullama-wasm"])?;
    let built = target().join(WASM).join("release/rullama_wasm.wasm");
    let package = root().join("web/client/src/wasm");
    glue(&built, &package)?;
    shrink(&package.join("rullama_bg.wasm"))?;
    sh_in(&root().join("web"), "node", &["tools/size.mjs", "client/src/wasm"])
}

fn glue(built: &Path, package: &Path) -> Result<()> {
    // What an earlier build left would be served too.
    if package.exists() {
        fs::remove_dir_all(package)?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(built).out_name("rullama").typescript(true);
    // Its errors are `anyhow`'s, but of a version of its own.
    bindgen
        .web(true)
        .and_then(|bindgen| bindgen.generate(package))
        .map_err(|error| anyhow!("wasm-bindgen: {error:?}"))
}

/// wasm-opt, from its npm package.
fn shrink(wasm: &Path) -> Result<()> {
    let small: PathBuf = wasm.with_extension("small");
    let paths = [wasm, &small].map(|path| path.display().to_string());
    let tool = "node_modules/binaryen/bin/wasm-opt";
    sh_in(&root().join("web"), "node", &[tool, "-Oz", &paths[0], "-o", &paths[1]])?;
    fs::rename(&small, wasm).with_context(|| format!("{} cannot be replaced", paths[0]))
}
