//! JavaScript bindings of `rullama-chat`'s template engine: conversions only. A page loads this module for models whose chat
//! template must be run.

use js_sys::Reflect;
use rullama_chat::{ChatError, ChatTemplate, Conversation, TemplateSource};
use serde::Deserialize;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

// Logs panics: without this a page sees only "unreachable executed".
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| error(&info.to_string())));
}

/// What a model file says about its template.
#[derive(Deserialize)]
struct Source {
    template: String,
    bos: String,
    eos: String,
    name: String,
}

/// The chat template of a model file.
#[wasm_bindgen]
pub struct Template(ChatTemplate);

#[wasm_bindgen]
impl Template {
    /// Reads a template, given as JSON `{ template, bos, eos, name }`.
    #[wasm_bindgen(constructor)]
    pub fn new(source: &str) -> Result<Self, JsValue> {
        let Source { template, bos, eos, name } = parsed(source)?;
        let source = TemplateSource {
            template: Some(&template),
            bos: &bos,
            eos: &eos,
            name: &name,
            // These decide the family of files without a template.
            architecture: "",
            has_token: &|_| false,
            has_layer_inputs: false,
        };
        Ok(Self(ChatTemplate::of_model(&source).map_err(thrown)?))
    }

    /// What the template says about its model, as JSON; `None` if it is that of a family, which renders natively.
    pub fn traits(&self) -> Result<Option<String>, JsValue> {
        let text = |traits| serde_json::to_string(&traits).map_err(|error| thrown(error.into()));
        self.0.traits().map(text).transpose()
    }

    /// Renders a conversation, given as JSON and without its prefix, to spans `[{ text, trusted }]`, as JSON.
    pub fn render(&self, conversation: &str) -> Result<String, JsValue> {
        let mut conversation: Conversation = parsed(conversation)?;
        // The caller writes it after the prompt.
        conversation.prefix = None;
        let prompt = self.0.render(&conversation, true).map_err(thrown)?;
        serde_json::to_string(prompt.spans()).map_err(|error| thrown(error.into()))
    }
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, JsValue> {
    serde_json::from_str(text).map_err(|error| thrown(error.into()))
}

/// An exception of the client's class for bad options.
#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn thrown(error: ChatError) -> JsValue {
    let exception = js_sys::Error::new(&error.to_string());
    // Setting a property of a new object cannot fail.
    let _ = Reflect::set(&exception, &"code".into(), &"bad_options".into());
    exception.into()
}
