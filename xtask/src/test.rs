//! Everything CI runs, in this order: the cheap checks first.

use anyhow::Result;

use crate::{
    background::Background,
    clients, clone_times,
    command::{root, say, sh, sh_with, target},
    deny, drill, drivers, package, peft, real_model,
    setup::{self, WASI},
    shaders,
    tidy::tidy,
    web,
};

/// Crates of the browser that need no GPU: their tests run as 32-bit wasm outside a browser. All crates of the browser are built for
/// it with the package (`web::check`).
pub(crate) const WITHOUT_GPU: [&str; 7] = [
    "rullama-source",
    "rullama-gguf",
    "rullama-adapter",
    "rullama-tokenizer",
    "rullama-chat",
    "rullama-api",
    "rullama-sampling",
];

/// Runs all of it, kernels on so many software drivers, or on the GPUs that are there.
pub(crate) fn test(software: Option<usize>) -> Result<()> {
    if std::env::var_os("CI").is_some() {
        clone_times::restore()?;
    }
    setup::without_web()?;
    // Some drivers may have been installed only now.
    let variables = software.map_or_else(Vec::new, drivers::environment);
    let web = Background::start("web-check")?;
    let python = Background::start("peft-setup")?;
    sh("cargo", &["fmt", "--all", "--check"])?;
    tidy()?;
    deny::deny()?;
    sh(
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
    )?;
    // Examples were compiled by the lints; linking them all takes long.
    let all = ["test", "--workspace", "--all-features"];
    sh_with(&root(), &variables, "cargo", &[&all[..], &["--lib", "--bins", "--tests"]].concat())?;
    sh("cargo", &[&all[..], &["--doc"]].concat())?;
    real_model::short()?;
    drill::short(&variables)?;
    python.finish()?;
    peft::peft()?;
    web.finish()?;
    let wasi = Background::start("wasi")?;
    web::ops()?;
    wasi.finish()?;
    web::in_browser()?;
    say("\nAll checks passed.");
    Ok(())
}

/// What takes too long for every test run: packages, clients, more requests through the scheduler, and the longest tests in browsers.
pub(crate) fn soak() -> Result<()> {
    setup::setup()?;
    package::package()?;
    shaders::check()?;
    clients::quick()?;
    let mut variables = drivers::environment(1);
    variables.push(("RULLAMA_SOAK", "1".to_owned()));
    let all = ["test", "--workspace", "--all-features", "--test", "models", "--", "batching"];
    sh_with(&root(), &variables, "cargo", &all)?;
    web::check()?;
    web::soak()
}

/// Tests of what needs no GPU, as 32-bit wasm outside a browser.
pub(crate) fn wasi() -> Result<()> {
    let packages: Vec<&str> = WITHOUT_GPU.iter().flat_map(|name| ["-p", name]).collect();
    sh("cargo", &[&["test", "--target", WASI, "--lib", "--tests"], packages.as_slice()].concat())?;
    // What pages without a GPU compute with. The rest of the engine's tests opens devices.
    sh("cargo", &["test", "--target", WASI, "--lib", "-p", "rullama-engine", "--", "cpu::"])
}

/// Our program, built as for its tests: `cargo build` would choose other features of what both depend on, and compile it all again.
pub(crate) fn program() -> Result<String> {
    sh("cargo", &["test", "--workspace", "--all-features", "--no-run", "--test", "program"])?;
    let name = format!("rullama{}", std::env::consts::EXE_SUFFIX);
    Ok(target().join("debug").join(name).display().to_string())
}
