//! Python environments for tests of other people's packages.

use anyhow::Result;

use crate::command::{sh, target};

/// A Python with the packages of a list, beside what cargo builds.
pub(crate) fn installed(name: &str, list: &str) -> Result<String> {
    let place = target().join("clients").join(name);
    let python = place.join("bin/python").display().to_string();
    if !place.is_dir() {
        sh("python3", &["-m", "venv", &place.display().to_string()])?;
    }
    sh(&python, &["-m", "pip", "install", "-q", "-r", list])?;
    Ok(python)
}
