//! `cargo xtask package`: the crates that are to be published, packaged as the registry would receive them.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command::{output, say, sh, target};

/// The registry's size limit.
const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// Packages every crate that is to be published, without compiling it again, and checks the size of each package. Cargo
/// checks that packages depend only on published crates.
pub(crate) fn package() -> Result<()> {
    let metadata: Value = serde_json::from_str(&output(
        "cargo",
        &["metadata", "--format-version", "1", "--no-deps", "--locked"],
    )?)?;
    let published = published(&metadata);
    let selected = published.iter().flat_map(|(name, _)| ["--package", name]);
    // Uncommitted changes are fine: nothing is uploaded.
    let flags = ["package", "--no-verify", "--allow-dirty", "--quiet"];
    sh("cargo", &flags.into_iter().chain(selected).collect::<Vec<_>>())?;
    let mut total = 0;
    for (name, version) in &published {
        let file = target().join("package").join(format!("{name}-{version}.crate"));
        let bytes = fs::metadata(&file).with_context(|| file.display().to_string())?.len();
        ensure!(
            bytes <= MAX_BYTES,
            "{name}: {bytes} bytes, more than the registry's limit of {MAX_BYTES}"
        );
        total += bytes;
    }
    say(&format!("packaged {} crates, {:.1} MB together", published.len(), total as f64 / 1e6));
    Ok(())
}

/// Names and versions of the workspace's packages without `publish = false`.
fn published(metadata: &Value) -> Vec<(&str, &str)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| package["publish"].is_null())
        .filter_map(|package| Some((package["name"].as_str()?, package["version"].as_str()?)))
        .collect()
}
