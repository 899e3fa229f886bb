//! How the conversations of a model are rendered: natively if its template is known, else by running the template.

#[cfg(feature = "jinja")]
use crate::jinja::JinjaTemplate;
use crate::{ChatError, Conversation, Family, Output, Prompt, RenderOptions, render};

/// The chat template of a model file.
#[derive(Debug, Clone)]
pub struct ChatTemplate(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Native(Family),
    /// The template of the file, and the markup of the model's output.
    #[cfg(feature = "jinja")]
    File(Box<JinjaTemplate>, Output),
}

impl From<Family> for ChatTemplate {
    fn from(family: Family) -> Self {
        Self(Kind::Native(family))
    }
}

impl ChatTemplate {
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
        {
            let native = matches!(family, Ok(None | Some(Family::Small | Family::Large)));
            if !native {
                let file = JinjaTemplate::new(template, bos, eos)?;
                let agrees = family.ok().flatten().filter(|family| agrees(*family, &file));
                let output = agrees.map_or_else(|| Output::of_template(template), Family::output);
                return Ok(Some(match agrees {
                    Some(family) => family.into(),
                    None => Self(Kind::File(Box::new(file), output)),
                }));
            }
        }
        #[cfg(not(feature = "jinja"))]
        let _ = (bos, eos);
        Ok(family?.map(Self::from))
    }

    /// The family that renders natively; `None` if the file's own template is run.
    pub fn family(&self) -> Option<Family> {
        match &self.0 {
            Kind::Native(family) => Some(*family),
            #[cfg(feature = "jinja")]
            Kind::File(..) => None,
        }
    }

    /// The markup of the model's thoughts and calls.
    pub fn output(&self) -> Output {
        match &self.0 {
            Kind::Native(family) => family.output(),
            #[cfg(feature = "jinja")]
            Kind::File(_, output) => *output,
        }
    }

    /// Renders a conversation; `repair` as in [`RenderOptions`].
    ///
    /// # Errors
    /// If the template does not accept the conversation, or the file's own template fails.
    pub fn render(&self, conversation: &Conversation, repair: bool) -> Result<Prompt, ChatError> {
        match &self.0 {
            Kind::Native(family) => render(conversation, RenderOptions { family: *family, repair }),
            #[cfg(feature = "jinja")]
            Kind::File(template, _) => template.render(conversation),
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
