//! The dispatches of a model's passes as text.

use rullama_engine::gpu::{DeviceFacts, plan_text};
use rullama_gguf::Gguf;
use rullama_models::{Catalog, decoder::Config};

use super::{
    load::LoadOptions,
    passes::{DefaultPasses, Placement},
};
use crate::error::RuntimeError;

/// The dispatches of a decoder's prefill and decode passes on a device with these facts: kernel, tiling, grid and layouts of each.
///
/// # Errors
/// If the file is no Gemma 4 decoder, or the format of a weight has no GPU kernel.
pub fn describe_plans(
    gguf: &Gguf,
    facts: &DeviceFacts,
    options: &LoadOptions,
) -> Result<String, RuntimeError> {
    let config = Config::of_file(gguf)?;
    let catalog = Catalog::of_file(gguf, &config.expected())?;
    let host_experts = options.host_experts.unwrap_or(0).min(config.layers.len());
    let passes =
        DefaultPasses::new(&config, &catalog, options, Placement { table: false, host_experts });
    let mut text = String::new();
    for (name, pass) in
        [("prefill", passes.longest_prefill()), ("decode", passes.sampled_decode().0)]
    {
        let segments = passes.segments(&pass);
        for (i, segment) in segments.iter().enumerate() {
            let part = if segments.len() > 1 { format!(", part {}", i + 1) } else { String::new() };
            let tokens = pass.tokens;
            text.push_str(&format!(
                "{name}, {tokens} token{}{part}\n",
                if tokens == 1 { "" } else { "s" }
            ));
            text.push_str(&plan_text(&segment.graph, facts)?);
            text.push('\n');
        }
    }
    Ok(text)
}
