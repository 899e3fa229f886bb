//! `rullama render`: messages in, prompt out.

use std::io::Read;

use anyhow::{Context, Result};
use rullama_chat::{ChatError, Conversation, Family, Prompt, RenderOptions};
use rullama_runtime::vocabulary::{PromptStyle, prompt_style};
use serde_json::{Value, json};

use crate::{
    args::{FamilyArg, RenderArgs},
    locate::Stores,
    output::{print, print_json},
};

pub(crate) fn render(stores: &Stores, args: &RenderArgs) -> Result<()> {
    let conversation: Conversation =
        serde_json::from_slice(&input(args)?).map_err(ChatError::from)?;
    let prompt = match (&args.model, args.family) {
        (Some(model), _) => for_model(stores, model, &conversation, args.repair)?,
        (None, Some(FamilyArg::Large)) => gemma4(&conversation, Family::Large, args.repair)?,
        (None, _) => gemma4(&conversation, Family::Small, args.repair)?,
    };
    if args.json {
        let spans: Vec<Value> = prompt
            .spans()
            .iter()
            .map(|span| json!({ "text": span.text, "trusted": span.trusted }))
            .collect();
        return print_json(&json!({ "prompt": prompt.text(), "spans": spans }));
    }
    // Exactly the prompt: not even a line break more.
    print(&prompt.text())
}

fn gemma4(conversation: &Conversation, family: Family, repair: bool) -> Result<Prompt> {
    Ok(rullama_chat::render(conversation, RenderOptions { family, repair })?)
}

fn for_model(
    stores: &Stores,
    model: &str,
    conversation: &Conversation,
    repair: bool,
) -> Result<Prompt> {
    let (_, gguf) = stores.open(model)?;
    match prompt_style(&gguf)? {
        PromptStyle::Gemma4(family) => gemma4(conversation, family, repair),
        PromptStyle::Foreign(_) => anyhow::bail!("pending"),
    }
}

fn input(args: &RenderArgs) -> Result<Vec<u8>> {
    match &args.input {
        Some(path) => std::fs::read(path).with_context(|| path.display().to_string()),
        None => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.context("standard input could not be read")?;
            Ok(bytes)
        }
    }
}
