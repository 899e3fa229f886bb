//! Checks the crate table of `ARCHITECTURE.md` against the manifests: a crate uses only what its row allows.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{packages, text};
use crate::command::root;

pub(super) fn check(metadata: &Value, problems: &mut Vec<String>) -> Result<()> {
    let page =
        std::fs::read_to_string(root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let allowed = crate_table(&page);
    let mut seen = Vec::new();
    for package in packages(metadata).filter(|p| p["source"].is_null()) {
        let Some(name) = crate_folder(package) else { continue };
        let Some(uses) = allowed.get(&name) else {
            problems.push(format!("crate `{name}` is missing from the table in ARCHITECTURE.md"));
            continue;
        };
        for used in used_crates(package, metadata) {
            if !uses.contains(&used) {
                problems.push(format!(
                    "crate `{name}` uses `{used}`, which its row in ARCHITECTURE.md does not allow"
                ));
            }
        }
        seen.push(name);
    }
    for name in allowed.keys().filter(|name| !seen.contains(name)) {
        problems.push(format!("ARCHITECTURE.md lists crate `{name}`, which does not exist"));
    }
    Ok(())
}

/// Rows `| `name` | question | `a`, `b` | invariants |` as name → crates it may use.
fn crate_table(page: &str) -> BTreeMap<String, Vec<String>> {
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    page.lines()
        .skip_while(|line| !line.starts_with("| crate |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            Some((quoted(cells.get(1)?).into_iter().next()?, quoted(cells.get(3)?)))
        })
        .collect()
}

/// `gguf` for the package in `crates/gguf`; `None` for packages elsewhere.
fn crate_folder(package: &Value) -> Option<String> {
    let manifest = std::path::Path::new(text(package, "manifest_path"));
    let folder = manifest.parent()?;
    (folder.parent()? == root().join("crates"))
        .then(|| folder.file_name()?.to_str().map(str::to_owned))?
}

/// Folders of the workspace crates that `package` uses outside its tests.
fn used_crates(package: &Value, metadata: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let names = dependencies.filter(|d| d["kind"].is_null()).map(|d| text(d, "name"));
    names
        .filter_map(|name| {
            packages(metadata).find(|p| p["source"].is_null() && text(p, "name") == name)
        })
        .filter_map(crate_folder)
        .collect()
}
