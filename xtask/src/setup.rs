//! Installs the requirements of the tests in addition to the toolchain.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{
    command::{output, root, say, sh, sh_in, sh_with},
    drivers, firefox,
};

/// The targets portable crates are built for; tests run on the second.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
pub(crate) const WASI: &str = "wasm32-wasip1";

/// The versions of Node that all tools of the web packages run on (`engines` of `web/package.json`), as people write them.
const NODE: &str = "20.19+, 22.12+ or 24+";
/// Debian's names of the software GPU drivers and the browser.
const PACKAGES: [&str; 3] = ["chromium", "libvulkan1", "mesa-vulkan-drivers"];

pub(crate) fn setup() -> Result<()> {
    without_web()?;
    web_packages()
}

/// Everything but Node packages.
pub(crate) fn without_web() -> Result<()> {
    rust_parts()?;
    node()?;
    system_packages()?;
    firefox::install();
    Ok(())
}

/// The requirements of building, without those of tests.
pub(crate) fn for_building() -> Result<()> {
    rust_parts()?;
    node()?;
    web_packages()
}

fn rust_parts() -> Result<()> {
    let targets = output("rustup", &["target", "list", "--installed"])?;
    for target in [WASM, WASI] {
        if !targets.lines().any(|line| line == target) {
            sh("rustup", &["target", "add", target])?;
        }
    }
    let components = output("rustup", &["component", "list", "--installed"])?;
    for component in ["clippy", "rustfmt"] {
        if !components.lines().any(|line| line.starts_with(component)) {
            sh("rustup", &["component", "add", component])?;
        }
    }
    Ok(())
}

fn node() -> Result<()> {
    let version = output("node", &["--version"]).with_context(|| {
        format!("Node is missing: install version {NODE} from https://nodejs.org")
    })?;
    let version = version.trim();
    if !runs_tools(version) {
        bail!("Node {version} does not run the tools of web/: install version {NODE}");
    }
    Ok(())
}

/// Whether this version of Node, such as `v22.12.0`, is one of [`NODE`].
fn runs_tools(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(|part| part.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0_u32);
    match (next(), next()) {
        (20, minor) => minor >= 19,
        (22, minor) => minor >= 12,
        (major, _) => major >= 24,
    }
}

/// Software GPU drivers and a browser, so that kernels are tested on machines without a GPU.
fn system_packages() -> Result<()> {
    if !cfg!(target_os = "linux") || (drivers::software().len() == 2 && drivers::browser()) {
        return Ok(());
    }
    if install(&PACKAGES)? {
        return Ok(());
    }
    say(
        "To test kernels without a GPU, install Chromium and Mesa's software Vulkan driver (lavapipe).",
    );
    say(&format!("On Debian and Ubuntu: sudo apt-get install {}", PACKAGES.join(" ")));
    Ok(())
}

/// Installs Debian packages if possible; returns whether it did.
pub(crate) fn install(packages: &[&str]) -> Result<bool> {
    let root_user = output("id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    if !root_user || !Path::new("/usr/bin/apt-get").is_file() {
        return Ok(false);
    }
    let silent = [("DEBIAN_FRONTEND", "noninteractive".to_owned())];
    let apt = |args: &[&str]| sh_with(&root(), &silent, "apt-get", args);
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())?;
    Ok(true)
}

/// Installs the packages of `web/`, if the lock file is newer.
pub(crate) fn web_packages() -> Result<()> {
    let web = root().join("web");
    let changed = |path: &str| web.join(path).metadata().and_then(|data| data.modified()).ok();
    let installed = changed("node_modules/.package-lock.json");
    if installed.is_some() && installed >= changed("package-lock.json") {
        return Ok(());
    }
    sh_in(&web, "npm", &["ci", "--no-audit", "--no-fund"])
}

#[cfg(test)]
mod tests {
    use super::runs_tools;

    #[test]
    fn node_versions_are_those_the_tools_run_on() {
        for version in ["v20.19.0", "v20.20.2", "v22.12.0", "v24.0.0", "v25.1.0"] {
            assert!(runs_tools(version), "{version}");
        }
        for version in ["v18.20.8", "v20.18.3", "v21.7.3", "v22.11.0", "v23.11.1", "nonsense", ""] {
            assert!(!runs_tools(version), "{version}");
        }
    }
}
