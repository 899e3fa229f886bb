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

/// Builds the wasm, the package around it and the app around that.
pub(crate) fn build() -> Result<()> {
    wasm::build()?;
    sh_in(&web(), "npm", &["run", "build"])
}

/// Sets up what is missing, builds, checks and tests it all.
pub(crate) fn web_task() -> Result<()> {
    without_web()?;
    check()?;
    ops()?;
    end_to_end(&["--project=client", "--project=storage", "--project=app"])?;
    say("\nAll checks of the web passed.");
    Ok(())
}

/// What CI has the time for of the end-to-end tests: golden answers, cancelling, lost devices, memory, persistent storage, training,
/// models of the real server, also without it, all of storage, and the app's conversations, failures, looks, policy, what it stores and
/// its offline start.
const IN_CI: [&str; 21] = [
    "client/control",
    "client/greedy",
    "client/lost",
    "client/memory",
    "client/persist",
    "client/served",
    "client/training",
    "storage",
    "app/answers",
    "app/budget",
    "app/catalogue",
    "app/chat",
    "app/failures",
    "app/language",
    "app/looks",
    "app/offline",
    "app/organize",
    "app/policy",
    "app/real",
    "app/repair",
    "app/stored",
];

/// Those end-to-end tests that CI has the time for, a golden answer in Firefox among them where there is one.
pub(crate) fn in_browser() -> Result<()> {
    let firefox = if firefox::installed() {
        &["firefox/greedy"][..]
    } else {
        say("\nThere is no Firefox here: nothing is tested in it.");
        &[]
    };
    end_to_end(&[&IN_CI[..], firefox, &["--grep-invert", "@slow"]].concat())
}

/// Everything that needs no browser; the packages it takes are brought first.
pub(crate) fn check() -> Result<()> {
    web_packages()?;
    build()?;
    sh_in(&web(), "npm", &["run", "check"])?;
    sh_in(&web(), "npm", &["test"])
}

/// End-to-end tests in a browser, on what was built.
fn end_to_end(which: &[&str]) -> Result<()> {
    // Debug builds serve the app from where it was just built.
    program()?;
    let variables: Vec<_> =
        peft::python().map(|python| ("RULLAMA_PEFT_PYTHON", python)).into_iter().collect();
    let command = [&["playwright", "test", "-c", "e2e"], which].concat();
    sh_with(&web(), &variables, "npx", &command)
}

/// The op suite in a browser, on what was built.
pub(crate) fn ops() -> Result<()> {
    sh_in(&web(), "node", &["tools/run-ops.mjs"])
}
