//! What `/set` changes and `/show` shows.

use anyhow::{Context, Result};
use rullama_chat::Family;
use rullama_runtime::options::SamplingOptions;
use serde_json::{Map, Value, json};

use super::{Chat, ready, sampling, session_options};
use crate::{
    output::{bytes, safe, safe_lines, table},
    run::command::{Setting, Topic},
};

impl Chat {
    /// Changes a setting and says so.
    pub(in crate::run) fn set(&mut self, setting: Setting) -> Result<String> {
        Ok(match setting {
            Setting::System(text) => {
                self.system = Some(text).filter(|text| !text.is_empty());
                "Set the system message.\n".into()
            }
            Setting::Think(on) => {
                self.thinking = on;
                format!(
                    "The model {} before it answers.\n",
                    if on { "thinks" } else { "does not think" }
                )
            }
            Setting::Format(None) => {
                self.format = None;
                "Answers are free.\n".into()
            }
            Setting::Format(Some(format)) => {
                self.format = Some(ready(&format, &self.model)?);
                "Answers are held to JSON.\n".into()
            }
            Setting::Verbose(on) => {
                self.verbose = on;
                format!("Times are {}shown.\n", if on { "" } else { "not " })
            }
            Setting::Parameter(name, value) if name == "num_ctx" => {
                let context = value.as_u64().and_then(|n| usize::try_from(n).ok());
                let context = context.context("num_ctx is a number of tokens")?;
                let options = session_options(Some(context), self.loader.cache);
                self.session = self.adapters.session(&self.model, &options, &self.loader)?;
                self.loader.context = Some(context);
                format!("The context has {context} tokens.\n")
            }
            Setting::Parameter(name, value) => {
                let text = format!("Set {name} to {value}.\n");
                sampling::set(&mut self.options, &json!({ name: value }))?;
                text
            }
        })
    }

    /// What a chat begins with.
    pub(in crate::run) fn greeting(&self) -> String {
        let (name, device) = (safe(&self.name), safe(self.model.device().name()));
        format!("{name} on {device}. /help lists commands, /bye leaves.\n")
    }

    /// Something about the model or the conversation.
    pub(in crate::run) fn show(&self, topic: Topic) -> Result<String> {
        Ok(match topic {
            Topic::Info => self.info(),
            Topic::Parameters => parameters(&self.options)?,
            Topic::System => match &self.system {
                Some(text) => safe_lines(text) + "\n",
                None => "There is no system message.\n".into(),
            },
            Topic::Template => {
                let family = match self.model.family()? {
                    Family::Small => "small family (E2B, E4B)",
                    Family::Large => "large family (12B, 26B-A4B, 31B)",
                };
                format!(
                    "Gemma 4's template of the {family}; templates of files are recognised, not run.\n"
                )
            }
        })
    }

    fn info(&self) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let name = self.model.gguf().str("general.name").unwrap_or("unnamed");
        let (used, context) = (self.session.tokens().len(), self.session.context());
        table(&[
            row("model", safe(&self.name)),
            row("name", safe(name)),
            row("layers", self.model.config().layers.len().to_string()),
            row("device", safe(self.model.device().name())),
            row("GPU memory", bytes(self.gpu_bytes())),
            row("context", format!("{context} tokens, {used} used")),
            row("trained for", format!("{} tokens", self.model.config().context)),
            row("messages", self.messages.len().to_string()),
        ])
    }
}

fn parameters(options: &SamplingOptions) -> Result<String> {
    // As text and back, so that a float is spelled as people spell it.
    let fields: Map<String, Value> = serde_json::from_str(&serde_json::to_string(options)?)?;
    let rows: Vec<Vec<String>> =
        fields.into_iter().map(|(name, value)| vec![name, safe(&value.to_string())]).collect();
    Ok(table(&rows))
}
