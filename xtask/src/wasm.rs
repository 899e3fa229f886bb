//! The browser build: wasm, JavaScript glue, wasm-opt, size.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use crate::{
    command::{output, root, sh, sh_in, target},
    setup::WASM,
};

/// The module that every page loads.
const ENGINE: &str = "rullama";
/// Modules of the package: the engine, and what pages load only when they need it, the grammars of constrained replies and the
/// engine of chat templates. Crates and names in the package.
const MODULES: [(&str, &str); 3] = [
    ("rullama-wasm", ENGINE),
    ("rullama-guidance-wasm", "guidance"),
    ("rullama-template-wasm", "template"),
];

/// Builds `web/client/src/wasm/`, which the client imports, and prints its size.
pub(crate) fn build() -> Result<()> {
    let package = root().join("web/client/src/wasm");
    // Files of an earlier build would be served, too.
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    for (name, module) in MODULES {
        // One at a time: features of one must not reach the other.
        sh("cargo", &["build", "--profile", "wasm", "--target", WASM, "-p", name])?;
        let built = target().join(WASM).join(format!("wasm/{}.wasm", name.replace('-', "_")));
        glue(&built, &package, module)?;
        let wasm = package.join(format!("{module}_bg.wasm"));
        blank_comments(&wasm)?;
        shrink(&wasm)?;
    }
    sh_in(&root().join("web"), "node", &["tools/size.mjs", "client/src/wasm"])
}

fn glue(built: &Path, package: &Path, module: &str) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(built).out_name(module).typescript(true);
    // Grammars of pages and templates of files may trap; the client then replaces the instance.
    bindgen.reset_state_function(module != ENGINE);
    // Its error type is `anyhow::Error` of another version.
    bindgen
        .web(true)
        .and_then(|bindgen| bindgen.generate(package))
        .map_err(|error| anyhow!("wasm-bindgen: {error:?}"))
}

/// Replaces comments of kernels by spaces, which compress to almost nothing. Kernels that are not found verbatim are
/// left unchanged.
fn blank_comments(wasm: &Path) -> Result<()> {
    let mut bytes = fs::read(wasm)?;
    for kernel in output("git", &["ls-files", "*.wgsl"])?.lines() {
        // A deleted file may still be in git's list.
        let Ok(text) = fs::read(root().join(kernel)) else { continue };
        let first = bytes.windows(text.len().max(1)).position(|window| window == text);
        if let Some(first) = first {
            bytes[first..first + text.len()].copy_from_slice(&without_comments(&text));
        }
    }
    fs::write(wasm, bytes).with_context(|| format!("{} cannot be written", wasm.display()))
}

/// The kernel with comments replaced by spaces; directives of the composer (`//#`) stay.
fn without_comments(kernel: &[u8]) -> Vec<u8> {
    let mut blank = kernel.to_vec();
    for line in blank.split_mut(|byte| *byte == b'\n') {
        if let Some(at) = line.windows(2).position(|two| two == b"//")
            && line.get(at + 2) != Some(&b'#')
        {
            line[at..].fill(b' ');
        }
    }
    blank
}

/// Runs wasm-opt from its npm package.
fn shrink(wasm: &Path) -> Result<()> {
    let small: PathBuf = wasm.with_extension("small");
    let paths = [wasm, &small].map(|path| path.display().to_string());
    let tool = "node_modules/binaryen/bin/wasm-opt";
    sh_in(&root().join("web"), "node", &[tool, "-Oz", &paths[0], "-o", &paths[1]])?;
    fs::rename(&small, wasm).with_context(|| format!("{} cannot be replaced", paths[0]))
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_become_spaces_and_directives_stay() {
        let kernel = "// Über alles.\n//#use sums\nlet x = 1; // one\n";
        let blank = String::from_utf8(without_comments(kernel.as_bytes())).expect("text");
        assert_eq!(blank.len(), kernel.len());
        assert_eq!(blank.trim_start(), "//#use sums\nlet x = 1;       \n");
    }
}
