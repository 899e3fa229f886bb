//! Everything CI runs, in this order: the cheap checks first.

use anyhow::Result;

use crate::{
    beside::Beside,
    command::{root, say, sh, sh_with},
    setup::{self, WASI},
    shaders,
    tidy::tidy,
    web,
};

/// Crates of the browser that need no GPU: their tests run as 32-bit wasm outside a browser. All crates of the browser are built for
/// it with the package (`web::check`).
const WITHOUT_GPU: [&str; 6] = [
    "rullama-source",
    "rullama-gguf",
    "rullama-adapter",
    "rullama-tokenizer",
    "rullama-chat",
    "rullama-sampling",
];

/// Runs all of it; `variables` choose the GPUs that kernels run on.
pub(crate) fn test(variables: &[(&str, String)]) -> Result<()> {
    setup::without_web()?;
    let web = Beside::start("web-check")?;
    sh("cargo", &["fmt", "--all", "--check"])?;
    tidy()?;
    sh(
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
    )?;
    // Examples were compiled by the lints; linking them all takes long.
    let all = ["test", "--workspace", "--all-features"];
    sh_with(&root(), variables, "cargo", &[&all[..], &["--lib", "--bins", "--tests"]].concat())?;
    sh("cargo", &[&all[..], &["--doc"]].concat())?;
    web.finish()?;
    shaders::check()?;

    let without_gpu: Vec<&str> = WITHOUT_GPU.iter().flat_map(|name| ["-p", name]).collect();
    sh(
        "cargo",
        &[&["test", "--target", WASI, "--lib", "--tests"], without_gpu.as_slice()].concat(),
    )?;
    web::in_browser()?;
    say("\nAll checks passed.");
    Ok(())
}
