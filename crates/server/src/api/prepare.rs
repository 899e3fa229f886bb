//! A request as the engine gets it: with the model's defaults, checked against its capabilities and the server's limits.

use rullama_api::{
    ApiError, Capability, ChatInput, Dialect, EmbeddingRequest, GenerationRequest, Input, Media,
    MediaKind, Options, PromptInput, PromptText,
};
use rullama_chat::{Content, Message};
use serde_json::Value;

use crate::{ApiLimits, engine::ServedModel};

/// Applies the model's system text, messages and options to a request, and checks it.
pub(super) fn generation(
    model: &ServedModel,
    mut request: GenerationRequest,
    limits: &ApiLimits,
) -> Result<GenerationRequest, ApiError> {
    check_capabilities(model, &request)?;
    check_limits(&request, limits)?;
    let stored = Options::from_value(Value::Object(model.parameters.clone())).unwrap_or_default();
    request.options = request.options.over(stored);
    let thinks = request.think.unwrap_or(true) && model.can(Capability::Thinking);
    request.think = Some(thinks);
    match &mut request.input {
        Input::Chat(chat) => {
            begin(model, chat, request.dialect);
            chat.conversation.thinking = thinks;
        }
        Input::Prompt(prompt) if prompt.system.is_none() && !prompt.raw => {
            prompt.system.clone_from(&model.system);
        }
        _ => {}
    }
    Ok(request)
}

/// Checks a request to embed, and applies the model's load options.
pub(super) fn embedding(
    model: &ServedModel,
    mut request: EmbeddingRequest,
    limits: &ApiLimits,
) -> Result<EmbeddingRequest, ApiError> {
    need(model, Capability::Embedding)?;
    check_text(request.input.iter().map(prompt_bytes).sum(), limits)?;
    let stored = Options::from_value(Value::Object(model.parameters.clone())).unwrap_or_default();
    request.options = request.options.over(stored);
    Ok(request)
}

/// The model's system text and messages come before those of the request. An empty system message of Ollama's API, whose templates leave
/// it out, replaces the model's by none.
fn begin(model: &ServedModel, chat: &mut ChatInput, dialect: Dialect) {
    let messages = &mut chat.conversation.messages;
    let is_system = |message: &Message| matches!(message.role.as_str(), "system" | "developer");
    let own = messages.first().is_some_and(is_system);
    // A system message of the request stays first, whatever the model brings along.
    let place = usize::from(own);
    messages.splice(place..place, model.messages.iter().cloned());
    if let (false, Some(system)) = (own, &model.system) {
        let content = Content::Text(system.clone());
        messages.insert(0, Message { role: "system".into(), content, ..Message::default() });
    }
    if own && dialect == Dialect::Ollama && message_bytes(&messages[0]) == 0 {
        messages.remove(0);
    }
}

fn need(model: &ServedModel, capability: Capability) -> Result<(), ApiError> {
    if model.can(capability) {
        return Ok(());
    }
    Err(ApiError::Incapable { model: model.name.clone(), capability })
}

fn check_capabilities(model: &ServedModel, request: &GenerationRequest) -> Result<(), ApiError> {
    match &request.input {
        Input::Chat(_) => need(model, Capability::Chat)?,
        Input::Prompt(prompt) => {
            need(model, Capability::Completion)?;
            if prompt.suffix.is_some() {
                need(model, Capability::Insert)?;
            }
        }
        Input::Load => return Ok(()),
    }
    if !request.tools().is_empty() {
        need(model, Capability::Tools)?;
    }
    if request.think == Some(true) && !request.think_if_capable {
        need(model, Capability::Thinking)?;
    }
    for file in media(request) {
        need(
            model,
            match file.kind {
                MediaKind::Image => Capability::Vision,
                MediaKind::Audio => Capability::Audio,
            },
        )?;
    }
    Ok(())
}

fn check_limits(request: &GenerationRequest, limits: &ApiLimits) -> Result<(), ApiError> {
    let files = media(request);
    if files.len() > limits.media {
        let message = format!(
            "the request has {} images and audio clips, but at most {} are accepted",
            files.len(),
            limits.media
        );
        return Err(ApiError::Invalid { message });
    }
    if files.iter().any(|file| file.bytes.len() as u64 > limits.media_bytes) {
        return Err(ApiError::TooLarge { limit: limits.media_bytes });
    }
    if request.choices() > limits.choices {
        let message = format!("at most {} choices are accepted", limits.choices);
        return Err(ApiError::Invalid { message });
    }
    let text = match &request.input {
        Input::Chat(chat) => chat.conversation.messages.iter().map(message_bytes).sum(),
        Input::Prompt(prompt) => prompt.prompts.iter().map(prompt_bytes).sum(),
        Input::Load => 0,
    };
    check_text(text, limits)
}

/// A text of so many bytes cannot fit any context; tokenizing it would only take time.
fn check_text(bytes: usize, limits: &ApiLimits) -> Result<(), ApiError> {
    if bytes as u64 > limits.prompt { Err(ApiError::ContextLength) } else { Ok(()) }
}

fn media(request: &GenerationRequest) -> &[Media] {
    match &request.input {
        Input::Chat(ChatInput { media, .. }) | Input::Prompt(PromptInput { media, .. }) => media,
        Input::Load => &[],
    }
}

fn message_bytes(message: &Message) -> usize {
    let content = match &message.content {
        Content::None => 0,
        Content::Text(text) => text.len(),
        Content::Parts(parts) => {
            parts.iter().map(|part| part.text.as_ref().map_or(0, String::len)).sum()
        }
        Content::Other(value) => value.to_string().len(),
    };
    content + message.reasoning.as_ref().map_or(0, String::len)
}

fn prompt_bytes(prompt: &PromptText) -> usize {
    match prompt {
        PromptText::Text(text) => text.len(),
        PromptText::Tokens(tokens) => tokens.len(),
    }
}
