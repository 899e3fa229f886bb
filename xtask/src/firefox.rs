//! Debian's Firefox, headless on lavapipe: another WGSL compiler with other limits.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{
    command::{root, say, sh_in},
    setup, wasm,
};

/// Debian's package.
const PACKAGE: &str = "firefox-esr";

/// Whether it is installed.
pub(crate) fn installed() -> bool {
    ["/usr/bin/firefox-esr", "/usr/bin/firefox"].iter().any(|path| Path::new(path).is_file())
}

/// Installs it if possible, else prints a hint. Other distributions have no such package.
pub(crate) fn install() {
    if installed() || !cfg!(target_os = "linux") {
        return;
    }
    if !setup::install(&[PACKAGE]).unwrap_or(false) {
        say("To test in Firefox, install it; on Debian: sudo apt-get install firefox-esr");
    }
}

/// Runs the whole op suite, all golden greedy continuations, the storage tests and those of chats in Firefox.
pub(crate) fn firefox() -> Result<()> {
    setup::without_web()?;
    setup::web_packages()?;
    if !installed() {
        bail!("no Firefox found: install the package `{PACKAGE}`, or Firefox itself");
    }
    wasm::build()?;
    let web = root().join("web");
    sh_in(&web, "npm", &["run", "build", "-w", "rullama"])?;
    let projects = ["--project=firefox", "--project=firefox-storage", "--project=firefox-app"];
    sh_in(&web, "npx", &[&["playwright", "test", "-c", "e2e"], &projects[..]].concat())
}
