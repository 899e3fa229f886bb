//! Rules for single files: length, leftovers, `unsafe`, platform switches, inherited manifest fields.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{output, root};

/// Maximum number of lines.
const MAX_LINES: usize = 500;
/// Files with an unsafe block: the memory map, wgpu's experimental features, kernels without runtime checks, the driver's pipeline cache, and
/// intrinsics of the CPU.
const UNSAFE: [&str; 11] = [
    "crates/source/src/file.rs",
    "crates/engine/src/gpu/device.rs",
    "crates/engine/src/gpu/pipelines.rs",
    "crates/engine/src/gpu/pipeline_cache.rs",
    "crates/engine/src/cpu/simd/neon.rs",
    "crates/engine/src/cpu/simd/neon/dot_products.rs",
    "crates/engine/src/cpu/simd/x86.rs",
    "crates/engine/src/cpu/simd/x86/avx2.rs",
    "crates/engine/src/cpu/simd/x86/avx2_bytes.rs",
    "crates/engine/src/cpu/simd/x86/avx512_bytes.rs",
    "crates/engine/src/cpu/simd/x86/avx512.rs",
];
const CODE: [&str; 5] = ["rs", "wgsl", "ts", "svelte", "mjs"];

pub(super) fn check(problems: &mut Vec<String>) -> Result<()> {
    let platform_files = platform_files()?;
    for name in output("git", &["ls-files"])?.lines() {
        let path = root().join(name);
        let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default();
        let is_manifest = name.starts_with("crates/") && name.ends_with("/Cargo.toml");
        if !path.is_file() || !(is_manifest || CODE.contains(&extension)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| name.to_owned())?;
        if is_manifest {
            check_manifest(name, &text, problems);
        } else {
            check_code(name, &text, &platform_files, problems);
        }
    }
    Ok(())
}

fn check_code(name: &str, text: &str, platform_files: &[String], problems: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("{name} has {lines} lines, more than {MAX_LINES}: split it"));
    }
    if name.starts_with("xtask/src/tidy/") {
        return; // contains the words it looks for
    }
    for (number, line) in text.lines().enumerate() {
        let mut report = |what: &str| problems.push(format!("{name}:{}: {what}", number + 1));
        if line.ends_with(char::is_whitespace) {
            report("trailing white space");
        }
        if ["TODO", "FIXME", "XXX"].iter().any(|word| line.contains(word)) {
            report("a leftover: do it, or open an issue");
        }
        if line.contains("unsafe {") && !UNSAFE.contains(&name) {
            report(
                "`unsafe` is allowed only in the memory map, the device, its pipelines and their cache, x86.rs, neon.rs and their parts",
            );
        }
        if line.contains("target_arch") && !platform_files.iter().any(|file| file == name) {
            report("a platform switch outside the files ARCHITECTURE.md lists");
        }
    }
}

fn check_manifest(name: &str, text: &str, problems: &mut Vec<String>) {
    for line in
        ["[lints]\nworkspace = true", "license.workspace = true", "edition.workspace = true"]
    {
        if !text.contains(line) {
            problems.push(format!("{name}: must inherit `{line}` from the workspace"));
        }
    }
}

/// The files in which `ARCHITECTURE.md` allows `cfg(target_arch = …)`.
fn platform_files() -> Result<Vec<String>> {
    let page =
        std::fs::read_to_string(root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let section = page
        .split("## Platform switches")
        .nth(1)
        .context("ARCHITECTURE.md: no section on platform switches")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    Ok(section
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|q| q.ends_with(".rs"))
        .map(str::to_owned)
        .collect())
}
