//! What we write is loaded by PEFT itself. PyTorch is gigabytes, so that CI does not do this.

use std::path::Path;

use anyhow::Result;

use crate::command::{root, sh};

/// Trains and converts adapters of golden models and lets PEFT load them, with this Python or one that is set up here.
pub(crate) fn peft(python: Option<&str>) -> Result<()> {
    let out = root().join("target/peft");
    let path = |name: &str| out.join(name).display().to_string();
    let python = match python {
        Some(python) => python.to_owned(),
        None => environment(&out)?,
    };
    let run = ["run", "-p", "rullama", "--all-features", "--bin", "rullama", "--"];
    let (model, data) = ("goldens/gguf/micro-e2b-Q8_0.gguf", path("data.jsonl"));
    std::fs::create_dir_all(&out)?;
    std::fs::write(&data, "{\"ids\":[2,5,7,9,11,13],\"n_prompt\":3}\n")?;
    let (trained, converted) = (path("trained"), path("converted"));
    for folder in [&trained, &converted] {
        if Path::new(folder).is_dir() {
            std::fs::remove_dir_all(folder)?;
        }
    }
    let train = ["train", model, &data, "--steps", "3", "--out", &trained, "--device", "cpu"];
    sh("cargo", &[&run[..], &train].concat())?;
    let gguf = "goldens/gguf/micro-e2b-lora-F32.gguf";
    let convert = ["adapter", "convert", gguf, "--out", &converted, "--base", "micro-e2b"];
    sh("cargo", &[&run[..], &convert].concat())?;
    sh(&python, &["tools/peft/check.py", &trained, &converted])
}

/// A Python with PEFT and PyTorch, below `target`.
fn environment(out: &Path) -> Result<String> {
    let (home, python) = (out.join("python"), out.join("python/bin/python"));
    if !python.is_file() {
        sh("python3", &["-m", "venv", &home.display().to_string()])?;
        let pip = ["-m", "pip", "install", "-q", "-r", "tools/peft/requirements.txt"];
        sh(&python.display().to_string(), &pip)?;
    }
    Ok(python.display().to_string())
}
