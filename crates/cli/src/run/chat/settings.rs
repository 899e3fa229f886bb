//! What `/set` changes and `/show` shows.

use anyhow::Result;
use rullama::Model;
use rullama_chat::Family;
use rullama_runtime::options::SamplingOptions;
use serde_json::{Map, Value, json};

use super::{Chat, sampling};
use crate::{
    output::{bytes, safe, safe_lines, table},
    run::command::{Setting, Topic},
};

impl Chat {
    /// Changes a setting.
    pub(super) fn apply(&mut self, setting: Setting) -> Result<()> {
        match setting {
            Setting::System(text) => {
                self.session.system = Some(text).filter(|text| !text.is_empty());
            }
            Setting::Think(on) => self.session.thinking = on,
            Setting::Format(format) => self.session.set_format(format)?,
            Setting::Verbose(on) => self.verbose = on,
            Setting::Parameter(name, value) if name == "num_ctx" => {
                let context = sampling::context(&value)?;
                self.session.set_context(context)?;
                self.loader.options.context = Some(context);
            }
            Setting::Parameter(name, value) => {
                sampling::set(&mut self.session.sampling, &json!({ name: value }))?;
            }
        }
        Ok(())
    }

    /// Something about the model or the conversation.
    pub(super) fn describe(&self, topic: Topic) -> Result<String> {
        Ok(match topic {
            Topic::Info => self.info(),
            Topic::Parameters => parameters(&self.session.sampling)?,
            Topic::System => match &self.session.system {
                Some(text) => safe_lines(text) + "\n",
                None => "No system message.\n".into(),
            },
            Topic::Template => {
                match self.model().runtime().template()?.family().map(Family::name) {
                    Some(name) => format!(
                        "Template of {name}; the one in the file is recognised but not run.\n"
                    ),
                    None => "The template in the file, run in a sandbox.\n".into(),
                }
            }
        })
    }

    fn model(&self) -> &Model {
        self.session.model()
    }

    fn info(&self) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let name = self.model().runtime().gguf().str("general.name").unwrap_or("unnamed");
        let (used, context) = (self.session.kv().tokens().len(), self.session.context());
        table(&[
            row("model", safe(self.model().name())),
            row("name", safe(name)),
            row("layers", self.model().runtime().config().layers.len().to_string()),
            row("device", safe(self.model().device().name())),
            row("GPU memory", bytes(self.session.gpu_bytes())),
            row("context", format!("{context} tokens, {used} used")),
            row("trained for", format!("{} tokens", self.model().runtime().config().context)),
            row("messages", self.session.messages().len().to_string()),
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
