//! Everything under `web/`: the package, the app, and their tests in a browser.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    command::{root, say, sh_in, sh_with},
    firefox, peft,
    setup::{web_packages, without_web},
    test::program,
    wasm,
};

fn web() -> PathBuf {
    root().join("web")
}

/// Builds the wasm, the npm package and the app.
pub(crate) fn build() -> Result<()> {
    wasm::build()?;
    sh_in(&web(), "npm", &["run", "build"])
}

/// Installs missing requirements, then builds, checks and tests everything.
pub(crate) fn web_task() -> Result<()> {
    without_web()?;
    check()?;
    ops()?;
    end_to_end(&["--project=client", "--project=storage", "--project=app-real", "--project=app"])?;
    say("\nAll checks of the web passed.");
    Ok(())
}

/// The end-to-end tests that CI has time for; `cargo xtask web` runs all.
const IN_CI: [&str; 18] = [
    "client/control",
    "client/greedy",
    "client/persist",
    "client/served",
    "storage",
    "app/answers",
    "app/budget",
    "app/catalogue",
    "app/chat",
    "app/failures",
    "app/offline",
    "app/organize",
    "app/policy",
    "app/real",
    "app/repair",
    "app/stored",
    "app/stream",
    "app/workspace",
];

/// Their projects: the storage tests run in Firefox with `cargo xtask firefox` only.
const PROJECTS: [&str; 5] = [
    "--project=client",
    "--project=storage",
    "--project=app-real",
    "--project=app",
    "--project=firefox",
];

/// Runs the end-to-end tests of CI, and a golden continuation in Firefox if it is installed.
pub(crate) fn in_browser() -> Result<()> {
    let firefox = if firefox::installed() {
        &["firefox/greedy"][..]
    } else {
        say("\nNo Firefox found: its test is skipped.");
        &[]
    };
    end_to_end(&[&IN_CI[..], firefox, &["--grep-invert", "@slow"], &PROJECTS].concat())
}

/// The longest end-to-end tests, with the last build.
pub(crate) fn soak() -> Result<()> {
    let tests = [
        "client/batch",
        "client/constraint",
        "client/lost",
        "client/memory",
        "client/shared",
        "client/standards",
        "client/template",
        "client/training",
        "app/language",
        "app/looks",
    ];
    end_to_end(&[&tests[..], &["--grep-invert", "@slow"]].concat())
}

/// Installs packages, builds, checks and tests everything that needs no browser.
pub(crate) fn check() -> Result<()> {
    web_packages()?;
    build()?;
    sh_in(&web(), "npm", &["run", "check"])?;
    sh_in(&web(), "npm", &["test"])
}

/// A model with released weights answers in the app; `model` is the variable that names its file.
pub(crate) fn real_model(model: (&'static str, String)) -> Result<()> {
    web_packages()?;
    build()?;
    end_to_end_with(&["app/released"], Some(model))
}

/// End-to-end tests in a browser, with the last build.
fn end_to_end(which: &[&str]) -> Result<()> {
    end_to_end_with(which, None)
}

fn end_to_end_with(which: &[&str], model: Option<(&'static str, String)>) -> Result<()> {
    // Debug builds serve the app from the build folder.
    program()?;
    let python = peft::python().map(|python| ("RULLAMA_PEFT_PYTHON", python));
    let variables: Vec<_> = python.into_iter().chain(model).collect();
    let command = [&["playwright", "test", "-c", "e2e"], which].concat();
    sh_with(&web(), &variables, "npx", &command)
}

/// The op suite in a browser, with the last build.
pub(crate) fn ops() -> Result<()> {
    sh_in(&web(), "node", &["tools/run-ops.mjs"])
}
