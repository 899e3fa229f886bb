//! Native renderer of the Gemma 4 chat templates.
//!
//! Calls and results are inside the model's turn, so a turn may span several messages: an assistant message, the `tool`
//! messages after it and further assistant messages.

use crate::format::{self, Keys};
use crate::markers::{
    AUDIO, BOS, CALL_CLOSE, CALL_OPEN, CHANNEL_CLOSE, CHANNEL_OPEN, IMAGE, RESPONSE_CLOSE,
    RESPONSE_OPEN, THINK, THOUGHT_LABEL, TURN_CLOSE, TURN_OPEN, VIDEO,
};
use crate::python::{is_space, strip};
use crate::{ChatError, Content, Conversation, Family, Message, Part, Prompt, ToolCall};
use crate::{chatml, function_gemma, gemma3, llama3, tools};
use serde_json::Value;

/// Options of [`render`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderOptions {
    /// The family whose template to render.
    pub family: Family,
    /// Whether to repair cases where the canonical template gives a broken prompt, or refuses to render. Gemma 4: a
    /// generation prompt is added when one was requested and the text ends with a closed turn, and quote markers are dropped
    /// from tool descriptions. Gemma 3: any order of roles is rendered. Without repairs, the text equals the canonical
    /// template's byte for byte.
    pub repair: bool,
}

impl RenderOptions {
    /// The options to run a model with: with repairs.
    pub fn for_model(family: Family) -> Self {
        Self { family, repair: true }
    }
}

/// The canonical text, without repairs.
impl From<Family> for RenderOptions {
    fn from(family: Family) -> Self {
        Self { family, repair: false }
    }
}

/// Renders a conversation. `render(&conversation, Family::Small)` gives the canonical text, [`RenderOptions::for_model`]
/// the prompt to run a model with.
pub fn render(
    conversation: &Conversation,
    options: impl Into<RenderOptions>,
) -> Result<Prompt, ChatError> {
    let options = options.into();
    match options.family {
        Family::Small | Family::Large => gemma4(conversation, options),
        Family::Gemma3 | Family::MedGemma | Family::TranslateGemma => {
            gemma3::render(conversation, options)
        }
        Family::FunctionGemma => function_gemma::render(conversation, false),
        Family::FunctionGemmaOllama => function_gemma::render(conversation, true),
        Family::Llama3 | Family::Llama31 => llama3::render(conversation, options.family),
        family => chatml::render(conversation, family),
    }
}

fn gemma4(conversation: &Conversation, options: RenderOptions) -> Result<Prompt, ChatError> {
    let mut renderer =
        Renderer { conversation, options, out: Prompt::default(), last: Last::Other };
    renderer.out.trusted(BOS);
    let rest = renderer.system_turn()?;
    renderer.turns(rest)?;
    renderer.generation_prompt();
    Ok(renderer.out)
}

/// What the last message ended with, apart from its content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Call,
    Response,
    Other,
}

struct Renderer<'a> {
    conversation: &'a Conversation,
    options: RenderOptions,
    out: Prompt,
    last: Last,
}

impl<'a> Renderer<'a> {
    /// Writes the opening system turn, if one is needed, and returns the remaining messages.
    fn system_turn(&mut self) -> Result<&'a [Message], ChatError> {
        let Conversation { messages, tools, thinking, .. } = self.conversation;
        let (system, rest) = match messages.split_first() {
            Some((first, rest)) if matches!(first.role.as_str(), "system" | "developer") => {
                (Some(first), rest)
            }
            _ => (None, messages.as_slice()),
        };
        if !thinking && tools.is_empty() && system.is_none() {
            return Ok(rest);
        }
        self.open_turn("system");
        if *thinking {
            self.out.trusted(THINK);
            self.out.trusted("\n");
        }
        match system.map(|message| (message, &message.content)) {
            Some((_, Content::Text(text))) => self.out.untrusted(strip(text)),
            Some((_, Content::Parts(parts))) => {
                for part in parts {
                    self.out.untrusted(strip(text_of(part)));
                    self.out.trusted(" ");
                }
            }
            Some((message, Content::Other(value))) => check_scalar(message, value)?,
            Some((_, Content::None)) | None => {}
        }
        for tool in tools {
            tools::declare(&mut self.out, tool, self.options.repair)?;
        }
        self.close_turn();
        Ok(rest)
    }

    fn turns(&mut self, messages: &'a [Message]) -> Result<(), ChatError> {
        let last_user = messages.iter().rposition(|m| m.role == "user");
        let mut previous_role = "";
        for (i, message) in messages.iter().enumerate() {
            // Results are written with their call; those without one are dropped.
            if message.role == "tool" {
                continue;
            }
            let after_last_user = last_user.is_none_or(|user| i > user);
            self.message(message, &messages[i + 1..], previous_role, after_last_user)?;
            previous_role = &message.role;
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &Message,
        following: &[Message],
        previous_role: &str,
        after_last_user: bool,
    ) -> Result<(), ChatError> {
        self.last = Last::Other;
        let role = if message.role == "assistant" { "model" } else { message.role.as_str() };
        let is_model = role == "model";
        if !(is_model && previous_role == "assistant") {
            self.open_turn(role);
        }
        let keeps_thought = self.conversation.preserve_thinking && !message.tool_calls.is_empty();
        if after_last_user || keeps_thought {
            self.thought(message);
        }
        self.calls(&message.tool_calls)?;
        let results = following.iter().take_while(|m| m.role == "tool");
        self.responses(message, results)?;
        let responded = self.last == Last::Response;
        let has_content = self.content(message, is_model)?;

        let next = following.iter().find(|m| m.role != "tool");
        let settled = message.tool_calls.is_empty() || responded;
        let turn_goes_on = is_model && settled && next.is_some_and(|m| m.role == "assistant");
        let model_goes_on = responded && !has_content && next.is_none();
        if self.last == Last::Call {
            self.out.trusted(RESPONSE_OPEN);
        } else if !turn_goes_on && !model_goes_on {
            self.close_turn();
        }
        Ok(())
    }

    fn thought(&mut self, message: &Message) {
        if let Some(thought) = message.reasoning.as_deref().filter(|text| !text.is_empty()) {
            self.out.trusted(CHANNEL_OPEN);
            self.out.trusted(THOUGHT_LABEL);
            self.out.untrusted(thought);
            self.out.trusted("\n");
            self.out.trusted(CHANNEL_CLOSE);
        }
    }

    fn calls(&mut self, calls: &[ToolCall]) -> Result<(), ChatError> {
        for call in calls {
            let arguments = call.decoded_arguments()?;
            self.out.trusted(CALL_OPEN);
            self.out.trusted("call:");
            self.out.untrusted(&call.name);
            self.out.trusted("{");
            format::pairs(&mut self.out, &arguments);
            self.out.trusted("}");
            self.out.trusted(CALL_CLOSE);
            self.last = Last::Call;
        }
        Ok(())
    }

    /// Results inside the message take precedence over the `tool` messages after it.
    fn responses<'m>(
        &mut self,
        message: &Message,
        results: impl Iterator<Item = &'m Message>,
    ) -> Result<(), ChatError> {
        for response in &message.tool_responses {
            // The template treats an absent result as an empty list.
            let nothing = Value::Array(Vec::new());
            let name = name_or_unknown(response.name.as_deref());
            self.response(name, response.response.as_ref().unwrap_or(&nothing));
        }
        if !message.tool_responses.is_empty() || message.tool_calls.is_empty() {
            return Ok(());
        }
        for result in results {
            // Two absent ids are equal; the last match wins.
            let call = message.tool_calls.iter().rfind(|call| call.id == result.tool_call_id);
            let name =
                call.map_or_else(|| name_or_unknown(result.name.as_deref()), |call| &call.name);
            match &result.content {
                Content::None => self.response(name, &Value::Null),
                Content::Text(text) => self.response(name, &Value::from(text.as_str())),
                Content::Parts(parts) => {
                    let texts = parts.iter().filter(|part| part.kind == "text").map(text_of);
                    self.response(name, &Value::String(texts.collect()));
                    parts.iter().for_each(|part| self.media(part));
                }
                Content::Other(value) => {
                    check_scalar(result, value)?;
                    self.response(name, value);
                }
            }
        }
        Ok(())
    }

    fn response(&mut self, name: &str, value: &Value) {
        self.out.trusted(RESPONSE_OPEN);
        self.out.trusted("response:");
        self.out.untrusted(name);
        self.out.trusted("{");
        match value {
            Value::Object(map) => format::pairs(&mut self.out, map),
            other => {
                self.out.trusted("value:");
                format::value(&mut self.out, other, Keys::Bare);
            }
        }
        self.out.trusted("}");
        self.out.trusted(RESPONSE_CLOSE);
        self.last = Last::Response;
    }

    /// Writes the content and returns whether there was any besides whitespace.
    fn content(&mut self, message: &Message, is_model: bool) -> Result<bool, ChatError> {
        let clean = |text: &str| {
            if is_model { strip_thinking(text) } else { strip(text).to_owned() }
        };
        match &message.content {
            Content::None => Ok(false),
            Content::Text(text) => Ok(self.text(&clean(text))),
            Content::Parts(parts) => {
                let mut any = false;
                for part in parts {
                    any |= match part.kind.as_str() {
                        "text" => self.text(&clean(text_of(part))),
                        _ => {
                            self.media(part);
                            placeholder(part).is_some()
                        }
                    };
                }
                Ok(any)
            }
            Content::Other(value) => check_scalar(message, value).map(|()| false),
        }
    }

    fn text(&mut self, text: &str) -> bool {
        self.out.untrusted(text);
        !text.chars().all(is_space)
    }

    fn media(&mut self, part: &Part) {
        if let Some(marker) = placeholder(part) {
            self.out.trusted(marker);
        }
    }

    fn generation_prompt(&mut self) {
        let Conversation { thinking, add_generation_prompt, .. } = *self.conversation;
        if !add_generation_prompt {
            return;
        }
        match self.last {
            Last::Other => {
                self.open_turn("model");
                if self.options.family == Family::Large && !thinking {
                    self.out.trusted(CHANNEL_OPEN);
                    self.out.trusted(THOUGHT_LABEL);
                    self.out.trusted(CHANNEL_CLOSE);
                }
            }
            Last::Response if thinking => {
                self.out.trusted(CHANNEL_OPEN);
                self.out.trusted(THOUGHT_LABEL);
            }
            Last::Response | Last::Call => {}
        }
        if self.options.repair && self.out.ends_with_closed_turn() {
            self.open_turn("model");
        }
    }

    fn open_turn(&mut self, role: &str) {
        self.out.trusted(TURN_OPEN);
        match role {
            "system" | "developer" | "user" | "model" => self.out.trusted(role),
            _ => self.out.untrusted(role),
        }
        self.out.trusted("\n");
    }

    fn close_turn(&mut self) {
        self.out.trusted(TURN_CLOSE);
        self.out.trusted("\n");
    }
}

/// Numbers and booleans are accepted and not rendered; other types are an error.
fn check_scalar(message: &Message, value: &Value) -> Result<(), ChatError> {
    match value {
        Value::Array(_) | Value::Object(_) => {
            Err(ChatError::ContentShape { role: message.role.clone() })
        }
        _ => Ok(()),
    }
}

fn name_or_unknown(name: Option<&str>) -> &str {
    name.filter(|name| !name.is_empty()).unwrap_or("unknown")
}

fn text_of(part: &Part) -> &str {
    part.text.as_deref().unwrap_or_default()
}

fn placeholder(part: &Part) -> Option<&'static str> {
    match part.kind.as_str() {
        "image" | "image_url" => Some(IMAGE),
        "audio" | "input_audio" => Some(AUDIO),
        "video" => Some(VIDEO),
        _ => None,
    }
}

/// Removes thought blocks: in each piece before a closing marker, keeps the text before the opening one.
fn strip_thinking(text: &str) -> String {
    let kept: String = text
        .split(CHANNEL_CLOSE)
        .map(|piece| piece.split_once(CHANNEL_OPEN).map_or(piece, |(before, _)| before))
        .collect();
    strip(&kept).to_owned()
}
