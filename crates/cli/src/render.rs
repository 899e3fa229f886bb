//! `rullama render`: renders messages into a prompt.

use std::io::Read;

use anyhow::{Context, Result, bail};
use rullama_chat::{ChatError, ChatTemplate, Conversation, Family};
use rullama_runtime::vocabulary;
use serde_json::{Value, json};

use crate::{
    args::{FamilyArg, RenderArgs},
    locate::Stores,
    output::{print, print_json},
};

pub(crate) fn render(stores: &Stores, args: &RenderArgs) -> Result<()> {
    let conversation: Conversation =
        serde_json::from_slice(&input(args)?).map_err(ChatError::from)?;
    let prompt = template(stores, args)?.render(&conversation, args.repair)?;
    if args.json {
        let spans: Vec<Value> = prompt
            .spans()
            .iter()
            .map(|span| json!({ "text": span.text, "trusted": span.trusted }))
            .collect();
        return print_json(&json!({ "prompt": prompt.text(), "spans": spans }));
    }
    // Exactly the prompt, without a final line break.
    print(&prompt.text())
}

/// The family the user chose, or the template of the model's file.
fn template(stores: &Stores, args: &RenderArgs) -> Result<ChatTemplate> {
    match (args.family, &args.model) {
        (Some(FamilyArg::Small), _) => Ok(Family::Small.into()),
        (Some(FamilyArg::Large), _) => Ok(Family::Large.into()),
        (None, Some(model)) => vocabulary::template(&stores.open(model)?.1)
            .context("for this model, give --family small or --family large"),
        (None, None) => bail!("give a MODEL or --family"),
    }
}

fn input(args: &RenderArgs) -> Result<Vec<u8>> {
    match &args.input {
        Some(path) => std::fs::read(path).with_context(|| path.display().to_string()),
        None => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.context("cannot read standard input")?;
            Ok(bytes)
        }
    }
}
