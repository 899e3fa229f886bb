//! `rullama adapter convert`: writes an adapter in another format.

use std::{fs, io::Write};

use anyhow::{Context, Result, bail};
use rullama_adapter::{Format, PeftFiles};
use serde_json::json;

use super::ConvertArgs;
use crate::{
    adapters::read,
    interrupt,
    output::{print, print_json},
    output_file::{self, OutputFile},
};

pub(super) fn convert(args: &ConvertArgs) -> Result<()> {
    let adapter = read(&args.path)?;
    interrupt::watch();
    let out = &args.out;
    let gguf = out.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
    if !gguf && adapter.format == Format::Gguf && adapter.architecture.as_deref() == Some("llama") {
        bail!(
            "adapters of llama models cannot be converted to PEFT: GGUF has the rows of queries and keys in another order; \
             use the GGUF adapter as it is"
        );
    }
    if gguf {
        let mut file = OutputFile::create(out)?;
        file.write_all(&adapter.to_gguf()?).with_context(|| out.display().to_string())?;
        interrupt::check()?;
        file.finish()?;
    } else {
        let named = args.base.clone().or(adapter.base_model.clone());
        let PeftFiles { config, weights } = adapter.to_peft(&named.unwrap_or_default())?;
        fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        output_file::write(&out.join(PeftFiles::WEIGHTS), &weights)?;
        output_file::write(&out.join(PeftFiles::CONFIG), config.as_bytes())?;
    }
    let format = if gguf { "GGUF" } else { "PEFT safetensors" };
    if args.json {
        return print_json(&json!({ "out": out, "format": format, "pairs": adapter.pairs.len() }));
    }
    let pairs = adapter.pairs.len();
    print(&format!("{}: {pairs} A/B pairs as {format}\n", out.display()))
}
