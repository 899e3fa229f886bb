//! Checks that PEFT loads the adapters that rullama writes.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::{
    command::{output, say, sh, target},
    setup::install,
    test::program,
};

/// The Python whose PyTorch is used: Debian's has no CUDA, which saves gigabytes compared with the one from `pip`.
const DEBIAN: &str = "/usr/bin/python3";
const PACKAGES: [&str; 2] = ["python3-torch", "python3-venv"];

fn home() -> PathBuf {
    target().join("peft")
}

/// Trains and converts adapters of golden models and loads them with PEFT, if PEFT is available.
pub(crate) fn peft() -> Result<()> {
    let Some(python) = python() else { return Ok(()) };
    let rullama = program()?;
    let path = |name: &str| home().join(name).display().to_string();
    let (model, data) = ("goldens/gguf/micro-e2b-Q8_0.gguf", path("data.jsonl"));
    std::fs::write(&data, "{\"ids\":[2,5,7,9,11,13],\"n_prompt\":3}\n")?;
    let (trained, converted) = (path("trained"), path("converted"));
    for folder in [&trained, &converted] {
        if Path::new(folder).is_dir() {
            std::fs::remove_dir_all(folder)?;
        }
    }
    sh(&rullama, &["train", model, &data, "--steps", "3", "--out", &trained, "--device", "cpu"])?;
    let gguf = "goldens/gguf/micro-e2b-lora-F32.gguf";
    sh(&rullama, &["adapter", "convert", gguf, "--out", &converted, "--base", "micro-e2b"])?;
    sh(&python, &["tools/peft/check.py", &trained, &converted])
}

/// A Python with PEFT; prints a message if it is not available.
pub(crate) fn python() -> Option<String> {
    set_up()
        .inspect_err(|missing| {
            say(&format!("PEFT is not available, so its tests are skipped: {missing:#}"));
        })
        .ok()
}

/// Sets up a Python with PEFT and PyTorch in the target folder, unless it exists.
fn set_up() -> Result<String> {
    let folder = home().join("python");
    let python = folder.join("bin/python").display().to_string();
    if imports(&python, "peft") {
        return Ok(python);
    }
    if !imports(DEBIAN, "torch") {
        install(&PACKAGES)?;
    }
    if !imports(DEBIAN, "torch") {
        bail!("{DEBIAN} has no PyTorch; Debian and Ubuntu have it in {}", PACKAGES.join(" and "));
    }
    sh(DEBIAN, &["-m", "venv", "--system-site-packages", &folder.display().to_string()])?;
    // Without dependencies: newer ones would shadow Debian's PyTorch and NumPy, which match each other.
    let options = ["-q", "--no-deps", "--require-hashes", "-r", "tools/peft/requirements.txt"];
    sh(&python, &[&["-m", "pip", "install"], &options[..]].concat())?;
    Ok(python)
}

fn imports(python: &str, module: &str) -> bool {
    Path::new(python).is_file() && output(python, &["-c", &format!("import {module}")]).is_ok()
}
