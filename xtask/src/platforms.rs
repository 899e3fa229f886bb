//! Other platforms: `cargo check` of the program for each, and tests under emulators.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{
    command::{output, root, say, sh, sh_with, target},
    setup::install,
    test::WITHOUT_GPU,
};

const APPLE: &str = "aarch64-apple-darwin";
const WINDOWS: &str = "x86_64-pc-windows-gnu";
const ARM: &str = "aarch64-unknown-linux-gnu";

/// The C compiler for all of them: Zig's, which includes the headers of every system and is a Python package.
const ZIG: &str = "tools/zig/requirements.txt";
/// Zig's names for the targets.
const ZIG_TARGETS: [(&str, &str); 3] =
    [(APPLE, "aarch64-macos"), (WINDOWS, "x86_64-windows-gnu"), (ARM, "aarch64-linux-gnu")];

fn check(compilers: &[(&'static str, String)], target: &str) -> Result<()> {
    add_target(target)?;
    sh_with(&root(), compilers, "cargo", &["check", "-p", "rullama-cli", "--target", target])
}

/// `cargo check` for macOS, Windows and Linux on ARM, the tests that need no GPU, and those of the CPU's kernels, on an emulated ARM processor, and the program under Wine.
pub(crate) fn platforms() -> Result<()> {
    let compilers = compilers()?;
    ZIG_TARGETS.iter().try_for_each(|(target, _)| check(&compilers, target))?;
    arm()?;
    windows()
}

/// Runs the tests that need no GPU under QEMU.
fn arm() -> Result<()> {
    let packages = ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];
    if !installed("qemu-aarch64") && !install(&packages)? {
        say(&format!("ARM is not tested here: install {}", packages.join(" ")));
        return Ok(());
    }
    let with_processor = |name: &str| {
        [
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc".to_owned()),
            (
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
                format!("qemu-aarch64 -cpu {name} -L /usr/aarch64-linux-gnu"),
            ),
        ]
    };
    let names: Vec<&str> = WITHOUT_GPU.iter().flat_map(|name| ["-p", name]).collect();
    let args = [&["test", "--target", ARM, "--lib", "--tests"], names.as_slice()].concat();
    sh_with(&root(), &with_processor("max"), "cargo", &args)?;
    // The CPU's kernels on NEON, with dot products of bytes and without. The rest of the engine's tests opens devices.
    let kernels = ["test", "--target", ARM, "--lib", "-p", "rullama-engine", "--", "cpu::"];
    ["max", "cortex-a53"]
        .into_iter()
        .try_for_each(|name| sh_with(&root(), &with_processor(name), "cargo", &kernels))
}

/// Runs the Windows program with the demo model on the CPU, under Wine.
fn windows() -> Result<()> {
    let packages = ["wine", "wine64", "gcc-mingw-w64-x86-64"];
    let found = installed("x86_64-w64-mingw32-gcc") && wine().is_some();
    if !found && !install(&packages)? {
        say(&format!("Windows is not tested here: install {}", packages.join(" ")));
        return Ok(());
    }
    add_target(WINDOWS)?;
    sh("cargo", &["build", "-p", "rullama-cli", "--target", WINDOWS])?;
    let program = target().join(WINDOWS).join("debug/rullama.exe").display().to_string();
    let wine = wine().context("Wine was installed but is not found")?;
    let prefix = TempDir::new()?;
    let run = |args: &[&str]| -> Result<String> {
        let ended = std::process::Command::new(wine)
            .arg(&program)
            .args(args)
            .env("WINEPREFIX", prefix.path())
            .env("WINEDEBUG", "-all")
            .current_dir(prefix.path())
            .stdin(std::process::Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&ended.stdout).replace("\r\n", "\n");
        let errors = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "`rullama {}` under Wine: {errors}", args.join(" "));
        Ok(text)
    };
    if run(&["--version"]).is_err() {
        // Rust's standard library imports bcryptprimitives.dll, which Wine 8.0 lacks.
        let version = output(wine, &["--version"]).unwrap_or_default();
        say(&format!("The Windows program is built, but {} cannot start it.", version.trim()));
        return Ok(());
    }
    let reply = run(&["run", "demo", "What is 2 + 3?", "--device", "cpu"])?;
    ensure!(reply.contains('5'), "under Wine the demo model says {reply:?}");
    say(&format!("Windows program under Wine: {}", reply.trim()));
    Ok(())
}

/// Environment variables with which build scripts compile C for each target with Zig.
fn compilers() -> Result<Vec<(&'static str, String)>> {
    let zig = zig()?;
    let mut variables = Vec::new();
    for (target, name) in ZIG_TARGETS {
        let script = |tool: &str, arguments: &str| -> Result<String> {
            let path = zig.join(format!("{tool}-{target}"));
            let python = zig.join("bin/python").display().to_string();
            let text = format!("#!/bin/sh\nexec '{python}' -m ziglang {tool} {arguments} \"$@\"\n");
            fs::write(&path, text)?;
            sh("chmod", &["+x", &path.display().to_string()])?;
            Ok(path.display().to_string())
        };
        let (cc, ar) = match target {
            APPLE => ("CC_aarch64_apple_darwin", "AR_aarch64_apple_darwin"),
            WINDOWS => ("CC_x86_64_pc_windows_gnu", "AR_x86_64_pc_windows_gnu"),
            _ => ("CC_aarch64_unknown_linux_gnu", "AR_aarch64_unknown_linux_gnu"),
        };
        variables.push((cc, script("cc", &format!("-target {name}"))?));
        variables.push((ar, script("ar", "")?));
        // Zig gets the target from its own option, and refuses the names that build scripts pass.
        variables.push(("CRATE_CC_NO_DEFAULTS", "1".to_owned()));
    }
    Ok(variables)
}

/// A Python with Zig, set up in the target folder.
fn zig() -> Result<PathBuf> {
    let home = target().join("zig");
    let python = home.join("bin/python").display().to_string();
    if output(&python, &["-m", "ziglang", "version"]).is_err() {
        sh("python3", &["-m", "venv", &home.display().to_string()])?;
        sh(&python, &["-m", "pip", "install", "-q", "--require-hashes", "-r", ZIG])?;
    }
    Ok(home)
}

fn add_target(name: &str) -> Result<()> {
    let targets = output("rustup", &["target", "list", "--installed"])?;
    if targets.lines().any(|line| line == name) {
        return Ok(());
    }
    sh("rustup", &["target", "add", name])
}

fn wine() -> Option<&'static str> {
    ["wine64", "wine", "/usr/lib/wine/wine64"].into_iter().find(|name| installed(name))
}

fn installed(program: &str) -> bool {
    output(program, &["--version"]).is_ok()
}
