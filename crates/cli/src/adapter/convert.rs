//! The same adapter in another format.

use std::fs;

use anyhow::{Context, Result};
use rullama_adapter::PeftFiles;
use serde_json::json;

use super::ConvertArgs;
use crate::{
    adapters::read,
    output::{print, print_json},
};

pub(super) fn convert(args: &ConvertArgs) -> Result<()> {
    let adapter = read(&args.path)?;
    let out = &args.out;
    let gguf = out.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
    let write = |path: &std::path::Path, bytes: &[u8]| {
        fs::write(path, bytes).with_context(|| path.display().to_string())
    };
    if gguf {
        write(out, &adapter.to_gguf()?)?;
    } else {
        let named = args.base.clone().or(adapter.base_model.clone());
        let PeftFiles { config, weights } = adapter.to_peft(&named.unwrap_or_default())?;
        fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        write(&out.join(PeftFiles::CONFIG), config.as_bytes())?;
        write(&out.join(PeftFiles::WEIGHTS), &weights)?;
    }
    let format = if gguf { "GGUF" } else { "PEFT safetensors" };
    if args.json {
        return print_json(&json!({ "out": out, "format": format, "pairs": adapter.pairs.len() }));
    }
    let pairs = adapter.pairs.len();
    print(&format!("{}: {pairs} pairs of factors as {format}\n", out.display()))
}
