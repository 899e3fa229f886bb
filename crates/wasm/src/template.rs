//! Chat templates that another module runs.

use std::{fmt, sync::Arc};

use js_sys::Error;
use rullama_chat::{ChatError, ChatTemplate, Conversation, Prompt, TemplateRunner, TemplateTraits};
use rullama_gguf::Gguf;
use rullama_runtime::vocabulary::{self, GivenTemplate, TemplateRefused, TemplateToRun};
use serde_json::json;
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// What a page passes: an object that runs the template of a model.
    pub type PageTemplate;

    /// What the template says about its model, as JSON; `None` if a family renders natively.
    #[wasm_bindgen(method, catch)]
    fn traits(this: &PageTemplate) -> Result<Option<String>, JsValue>;

    /// Renders a conversation, as JSON, to spans, as JSON.
    #[wasm_bindgen(method, catch)]
    fn render(this: &PageTemplate, conversation: &str) -> Result<String, JsValue>;
}

/// The template of a file that must be run, as JSON.
pub(crate) fn to_run(gguf: &Gguf) -> Option<String> {
    let TemplateToRun { template, bos, eos, name, is_of_known_family } =
        vocabulary::template_to_run(gguf).ok()??;
    let source = json!({ "template": template, "bos": bos, "eos": eos, "name": name });
    Some(json!({ "source": source.to_string(), "isOfKnownFamily": is_of_known_family }).to_string())
}

/// What a page's template is to the runtime; `None` if a family renders natively.
pub(crate) fn given(page: PageTemplate) -> Option<GivenTemplate> {
    let refused = |message| Some(Err(TemplateRefused { message }));
    match page.traits() {
        Ok(None) => None,
        Ok(Some(traits)) => match serde_json::from_str::<TemplateTraits>(&traits) {
            Ok(traits) => Some(Ok(ChatTemplate::run_by(Arc::new(PageRunner(page)), traits))),
            Err(error) => refused(error.to_string()),
        },
        Err(error) => refused(message_of(&error)),
    }
}

struct PageRunner(PageTemplate);

impl fmt::Debug for PageRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageRunner")
    }
}

impl TemplateRunner for PageRunner {
    fn render(&self, conversation: &Conversation) -> Result<Prompt, ChatError> {
        let conversation = serde_json::to_string(conversation)?;
        let spans = self.0.render(&conversation);
        let spans = spans.map_err(|error| ChatError::Runner { message: message_of(&error) })?;
        Ok(Prompt::from_spans(serde_json::from_str::<Vec<_>>(&spans)?))
    }
}

fn message_of(error: &JsValue) -> String {
    let message = error.dyn_ref::<Error>().map(|error| String::from(error.message()));
    message.unwrap_or_else(|| format!("{error:?}"))
}
