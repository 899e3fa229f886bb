//! `cargo deny`: licences, bans and sources of all dependencies, by `deny.toml`.

use anyhow::Result;

use crate::command::{output, sh, target};

/// The version `deny.toml` is written for.
const VERSION: &str = "0.20.2";

pub(crate) fn deny() -> Result<()> {
    let home = target().join("tools");
    let program = home.join("bin/cargo-deny").display().to_string();
    let installed = output(&program, &["--version"]).is_ok_and(|text| text.contains(VERSION));
    if !installed {
        // Installed into the target folder, so that it is compiled once per machine; without optimisation, which takes longer than it saves.
        let version = format!("={VERSION}");
        let root = home.display().to_string();
        sh(
            "cargo",
            &[
                "install",
                "cargo-deny",
                "--debug",
                "--locked",
                "--version",
                &version,
                "--root",
                &root,
            ],
        )?;
    }
    sh(&program, &["--workspace", "check", "licenses", "bans", "sources"])
}
