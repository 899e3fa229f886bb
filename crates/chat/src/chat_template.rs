//! How the conversations of a model are rendered: natively if its template is known, else by running the template.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "jinja")]
use crate::jinja::JinjaTemplate;
use crate::{
    ChatError, Conversation, Family, Output, Prompt, PromptEnd, RenderOptions, ReplyPrefix, render,
};

/// What only templates of models that think contain.
#[cfg(feature = "jinja")]
const THINKING: [&str; 4] = ["enable_thinking", "<|think|>", "<think>", "<unused94>"];

/// The chat template of a model file.
#[derive(Debug, Clone)]
pub struct ChatTemplate(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Native(Family),
    /// The template of the file, which is run.
    File(FileTemplate),
}

/// A template of no known family.
#[derive(Debug, Clone)]
struct FileTemplate {
    runner: Arc<dyn TemplateRunner>,
    traits: TemplateTraits,
}

/// Runs the template of a model file: this crate's sandbox, with the feature `jinja`, or one that the caller has. In a page, the
/// sandbox is a wasm module of its own.
pub trait TemplateRunner: fmt::Debug + Send + Sync {
    /// Renders a conversation, without its prefix.
    ///
    /// # Errors
    /// If the template fails, or the conversation is invalid.
    fn render(&self, conversation: &Conversation) -> Result<Prompt, ChatError>;
}

/// What a template of no known family says about its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateTraits {
    /// The markup of the model's output.
    pub output: Output,
    /// Whether the template declares tools to the model.
    pub has_tools: bool,
    /// Whether the model can think before it replies.
    pub thinks: bool,
}

/// What a model file says about its chat template.
pub struct TemplateSource<'a> {
    /// The file's own template.
    pub template: Option<&'a str>,
    /// Text of the beginning-of-sequence token.
    pub bos: &'a str,
    /// Text of the end-of-sequence token.
    pub eos: &'a str,
    /// The model's name, which tells MedGemma from Gemma 3: template and tokens are the same.
    pub name: &'a str,
    /// The architecture, for files without a template.
    pub architecture: &'a str,
    /// Whether the vocabulary has a token of this text.
    pub has_token: &'a dyn Fn(&str) -> bool,
    /// Whether the model has inputs for each layer, as small Gemma 4 models do.
    pub has_layer_inputs: bool,
}

impl TemplateSource<'_> {
    /// The family of a file without a usable template, by its tokens or else its architecture.
    fn family(&self) -> Family {
        if let Some(family) = Family::of_vocabulary(self.has_token) {
            return family;
        }
        match self.architecture {
            "gemma3" => Family::Gemma3,
            // As llama.cpp does for models without a template.
            "llama" | "qwen2" | "qwen3" => Family::ChatMl,
            _ if self.has_layer_inputs => Family::Small,
            _ => Family::Large,
        }
    }
}

impl From<Family> for ChatTemplate {
    fn from(family: Family) -> Self {
        Self(Kind::Native(family))
    }
}

impl ChatTemplate {
    /// The template of a model: the file's own, or else that of the family its tokens or its architecture show.
    ///
    /// # Errors
    /// If the file's template is of no known family and cannot be run.
    pub fn of_model(source: &TemplateSource<'_>) -> Result<Self, ChatError> {
        let own =
            source.template.map(|text| Self::new(text, source.bos, source.eos)).transpose()?;
        let template = own.flatten().unwrap_or_else(|| source.family().into());
        if !source.name.to_ascii_lowercase().contains("medgemma") {
            return Ok(template);
        }
        Ok(match template.0 {
            Kind::Native(Family::Gemma3) => Family::MedGemma.into(),
            // A template of its own leaves the model its marks of thoughts.
            Kind::File(FileTemplate { runner, traits }) if traits.output == Output::Tagged => {
                let traits = TemplateTraits { output: Output::Gemma3, ..traits };
                Self::run_by(runner, traits)
            }
            kind => Self(kind),
        })
    }

    /// Reads the template of a model file; `bos` and `eos` are the texts of its beginning-of-sequence and end-of-sequence
    /// tokens. `None` for a Gemma 4 template that does not show which of the Gemma 4 families it is.
    ///
    /// A template of a known family is rendered natively. With the feature `jinja`, other templates run in a sandbox, and so
    /// does one that resembles a known family's but renders differently.
    ///
    /// # Errors
    /// If the template is of no known family and cannot be run.
    pub fn new(template: &str, bos: &str, eos: &str) -> Result<Option<Self>, ChatError> {
        let family = Family::of_template(template);
        #[cfg(feature = "jinja")]
        if Self::needs_runner(template) {
            let file = JinjaTemplate::new(template, bos, eos)?;
            let agrees = family.ok().flatten().filter(|family| agrees(*family, &file));
            return Ok(Some(agrees.map_or_else(
                || Self::run_by(Arc::new(file), TemplateTraits::of(template)),
                Self::from,
            )));
        }
        #[cfg(not(feature = "jinja"))]
        let _ = (bos, eos);
        Ok(family?.map(Self::from))
    }

    /// A template of no known family that `runner` runs.
    pub fn run_by(runner: Arc<dyn TemplateRunner>, traits: TemplateTraits) -> Self {
        Self(Kind::File(FileTemplate { runner, traits }))
    }

    /// Whether a template must be run, to render with it or to see whether it is really that of the family it resembles. Gemma 4's
    /// are known by their markers.
    pub fn needs_runner(template: &str) -> bool {
        let family = Family::of_template(template);
        !matches!(family, Ok(None | Some(Family::Small | Family::Large)))
    }

    /// What the file's own template says about its model; `None` if a family renders natively.
    pub fn traits(&self) -> Option<TemplateTraits> {
        match &self.0 {
            Kind::Native(_) => None,
            Kind::File(file) => Some(file.traits),
        }
    }

    /// The family that renders natively; `None` if the file's own template is run.
    pub fn family(&self) -> Option<Family> {
        match &self.0 {
            Kind::Native(family) => Some(*family),
            Kind::File(_) => None,
        }
    }

    /// Whether it declares tools to the model.
    pub fn has_tools(&self) -> bool {
        match &self.0 {
            Kind::Native(family) => family.has_tools(),
            Kind::File(file) => file.traits.has_tools,
        }
    }

    /// Whether its models can think before they reply.
    pub fn thinks(&self) -> bool {
        match &self.0 {
            Kind::Native(family) => family.thinks(),
            Kind::File(file) => file.traits.thinks,
        }
    }

    /// The markup of the model's thoughts and calls.
    pub fn output(&self) -> Output {
        match &self.0 {
            Kind::Native(family) => family.output(),
            Kind::File(file) => file.traits.output,
        }
    }

    /// Renders a conversation; `repair` as in [`RenderOptions`].
    ///
    /// # Errors
    /// If the template does not accept the conversation, or the file's own template fails.
    pub fn render(&self, conversation: &Conversation, repair: bool) -> Result<Prompt, ChatError> {
        let mut prompt = match &self.0 {
            Kind::Native(family) => render(conversation, RenderOptions { family: *family, repair }),
            Kind::File(file) => file.runner.render(conversation),
        }?;
        match &conversation.prefix {
            Some(prefix) if conversation.add_generation_prompt => {
                self.begin_reply(&mut prompt, prefix, conversation.thinking)?;
            }
            _ => {}
        }
        Ok(prompt)
    }

    /// Writes the beginning of a reply after the prompt. Its text is no thought: one that the prompt has opened ends first.
    fn begin_reply(
        &self,
        prompt: &mut Prompt,
        prefix: &ReplyPrefix,
        thinks: bool,
    ) -> Result<(), ChatError> {
        let markup = self.output().markup();
        let [open, close] = markup.thought;
        let thought = prefix.thinking.as_deref().unwrap_or_default();
        let writes_thought = thinks && !open.is_empty() && !thought.is_empty();
        let has_opened = match prompt.end() {
            PromptEnd::ToolResult => return Err(ChatError::PrefixAfterCall),
            PromptEnd::Thinking => true,
            PromptEnd::Content => false,
        };
        if writes_thought && !has_opened {
            prompt.trusted(open);
            prompt.trusted(markup.label);
        }
        if writes_thought {
            prompt.untrusted(thought);
        }
        if writes_thought || has_opened {
            // Between tags, an empty thought is an empty line.
            let is_tagged = markup.label == "\n";
            prompt.trusted(if writes_thought || is_tagged { "\n" } else { "" });
            prompt.trusted(close);
            prompt.trusted(markup.after_thought);
        }
        prompt.untrusted(&prefix.text);
        Ok(())
    }
}

#[cfg(feature = "jinja")]
impl TemplateTraits {
    fn of(template: &str) -> Self {
        Self {
            output: Output::of_template(template),
            has_tools: template.contains("tools"),
            thinks: THINKING.iter().any(|word| template.contains(word)),
        }
    }
}

/// Whether a template renders the same text as a family's native renderer.
#[cfg(feature = "jinja")]
fn agrees(family: Family, template: &JinjaTemplate) -> bool {
    use crate::{Message, Tool};
    use serde_json::json;

    let turn = |role: &str| Message::new(role, format!("a {role}'s text"));
    let chat = |roles: &[&str]| Conversation {
        messages: roles.iter().map(|role| turn(role)).collect(),
        ..Conversation::default()
    };
    let mut probes = vec![
        chat(&["user"]),
        chat(&["user", "assistant", "user"]),
        chat(&["system", "user", "assistant", "user"]),
        Conversation { add_generation_prompt: false, ..chat(&["system", "user", "assistant"]) },
    ];
    if matches!(family, Family::Qwen25 | Family::Qwen3 | Family::Llama31 | Family::FunctionGemma) {
        let parameters = json!({ "type": "object", "properties": { "a": { "type": "string", "description": "b" } } });
        let tool = json!({ "name": "f", "description": "d", "parameters": parameters });
        let tools: Vec<Tool> = serde_json::from_value(tool).into_iter().collect();
        probes.push(Conversation { tools, ..chat(&["system", "user"]) });
    }
    probes.iter().all(|probe| {
        let native = render(probe, family).map(|prompt| prompt.text());
        let own = template.render(probe).map(|prompt| prompt.text());
        matches!((native, own), (Ok(native), Ok(own)) if native == own)
    })
}
