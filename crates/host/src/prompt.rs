//! From a request to prompts.

use rullama_api::{
    ApiError, ChatInput, Dialect, GenerationRequest, Input, Prefill, PromptInput, PromptText,
};
use rullama_chat::{Conversation, Message, Output};
use rullama_guidance::CallFormat;
use rullama_runtime::{
    EncodedMedia, Model, RuntimeError,
    generate::{ChatOptions, Prompt, prompt_with},
};
use rullama_tokenizer::Special;

use crate::{calls, error::of_runtime};

/// A prompt, and what is known about its reply.
pub(crate) struct Built {
    pub(crate) prompt: Prompt,
    /// The prompt as text, where somebody wants to see it.
    pub(crate) text: String,
    /// The call that the reply must be.
    pub(crate) call: Option<CallFormat>,
}

/// Refuses images and audio that a prompt has no place for. To be called before they are encoded, which may take long: errors that come late are
/// sent in a stream that has begun.
pub(crate) fn check_media(request: &GenerationRequest) -> Result<(), ApiError> {
    match &request.input {
        Input::Prompt(input)
            if !input.media.is_empty()
                && input.prompts.iter().any(|prompt| input.to_chat(prompt).is_none()) =>
        {
            let message = "a raw prompt cannot have images or audio: send messages".to_owned();
            Err(ApiError::Invalid { message })
        }
        _ => Ok(()),
    }
}

/// The prompts of a request, within a context of so many tokens.
pub(crate) fn build(
    model: &Model,
    request: &GenerationRequest,
    media: &[EncodedMedia],
    context: usize,
) -> Result<Vec<Built>, ApiError> {
    let failed = |error: RuntimeError| of_runtime(&error);
    let all = match &request.input {
        Input::Chat(chat) => vec![of_chat(model, request, chat, media, context)?],
        Input::Prompt(prompt) => {
            let one = |text| of_text(model, request, prompt, text, media, context);
            prompt.prompts.iter().map(one).collect::<Result<_, _>>()?
        }
        Input::Load => return Err(failed(RuntimeError::EmptyPrompt)),
    };
    // A reply needs room for one token at least.
    if all.iter().any(|built: &Built| built.prompt.tokens.len() >= context) {
        return Err(ApiError::ContextLength);
    }
    Ok(all)
}

fn of_text(
    model: &Model,
    request: &GenerationRequest,
    input: &PromptInput,
    prompt: &PromptText,
    media: &[EncodedMedia],
    context: usize,
) -> Result<Built, ApiError> {
    let failed = |error: RuntimeError| of_runtime(&error);
    if let Some(mut chat) = input.to_chat(prompt) {
        chat.conversation.thinking = request.think.unwrap_or(false)
            && (request.dialect == Dialect::Ollama || request.think_if_capable);
        let mut built = of_chat(model, request, &chat, media, context)?;
        continue_from(&mut built.prompt, &input.context, model.tokenizer().map_err(failed)?.bos());
        return Ok(built);
    }
    let (prompt, text) = match prompt {
        PromptText::Text(text) => (Prompt::text(model, text).map_err(failed)?, text.clone()),
        PromptText::Tokens(tokens) => (Prompt::tokens(tokens.clone()), String::new()),
    };
    Ok(Built { prompt, text, call: None })
}

/// Puts the tokens of an earlier exchange before a prompt, which then needs no beginning of its own.
fn continue_from(prompt: &mut Prompt, earlier: &[u32], bos: Option<u32>) {
    if earlier.is_empty() {
        return;
    }
    let begins = bos.is_some() && prompt.tokens.first() == bos.as_ref();
    prompt.tokens.splice(0..usize::from(begins), earlier.iter().copied());
}

fn of_chat(
    model: &Model,
    request: &GenerationRequest,
    chat: &ChatInput,
    media: &[EncodedMedia],
    context: usize,
) -> Result<Built, ApiError> {
    let mut conversation = chat.conversation.clone();
    let must_call = calls::apply(&request.tool_choice, &mut conversation);
    let failed = |error: RuntimeError| of_runtime(&error);
    let output = model.template().map_err(failed)?.output();
    if let Some(prefill) = &chat.prefill {
        // The reply begins where the prompt ends: there is no place for a thought. ChatML's prompt has an empty one without thinking,
        // which the thought of the beginning replaces.
        conversation.thinking = output == Output::Tagged && prefill.thinking.is_some();
    }
    let mut media = media;
    loop {
        let options = ChatOptions::default();
        let built = prompt_with(model, &conversation, media, options);
        let fits = built.as_ref().is_ok_and(|prompt| prompt.tokens.len() < context);
        if fits || !request.truncate {
            let mut prompt = built.map_err(|error| of_runtime(&error))?;
            let mut text = rendered(model, &conversation)?;
            prompt.thought_limit = request
                .think_budget
                .filter(|_| conversation.thinking)
                .map(|tokens| tokens as usize);
            if let Some(prefill) = &chat.prefill {
                append(model, &mut prompt, &mut text, prefill, output)?;
            }
            let call = must_call.then(|| CallFormat { output, tools: conversation.tools });
            return Ok(Built { prompt, text, call });
        }
        let Some(dropped) = drop_oldest(&mut conversation) else {
            return Err(built.map_or_else(|error| of_runtime(&error), |_| ApiError::ContextLength));
        };
        media = &media[dropped.min(media.len())..];
    }
}

fn rendered(model: &Model, conversation: &Conversation) -> Result<String, ApiError> {
    let invalid = |message: String| ApiError::Invalid { message };
    let template = model.template().map_err(|error| of_runtime(&error))?;
    let rendered = template.render(conversation, true);
    Ok(rendered.map_err(|error| invalid(error.to_string()))?.text())
}

/// Adds the beginning of the reply.
fn append(
    model: &Model,
    prompt: &mut Prompt,
    text: &mut String,
    Prefill { thinking, text: begun }: &Prefill,
    output: Output,
) -> Result<(), ApiError> {
    let tokenizer = model.tokenizer().map_err(|error| of_runtime(&error))?;
    if let (Some(thought), Some([open, close])) = (thinking, output.thought_markers()) {
        let label = output.thought_label();
        // As the templates write them: ChatML has line breaks around the thought.
        let close =
            if output == Output::Tagged { format!("\n{close}\n\n") } else { close.to_owned() };
        let parts = [
            (format!("{open}{label}"), Special::Parse),
            (thought.clone(), Special::None),
            (close, Special::Parse),
        ];
        for (part, special) in parts {
            prompt.tokens.extend(tokenizer.encode(&part, special));
            text.push_str(&part);
        }
        prompt.thinks = false;
    }
    prompt.tokens.extend(tokenizer.encode(begun, Special::None));
    text.push_str(begun);
    Ok(())
}

/// Drops the oldest message but system messages and the last one, with the tool results that follow it; how many media went with them.
fn drop_oldest(conversation: &mut Conversation) -> Option<usize> {
    let is_system = |message: &Message| matches!(message.role.as_str(), "system" | "developer");
    let messages = &mut conversation.messages;
    let first = messages.iter().position(|message| !is_system(message))?;
    if first + 1 >= messages.len() {
        return None;
    }
    let mut dropped = count_media(&messages.remove(first));
    while first + 1 < messages.len() && messages[first].role == "tool" {
        dropped += count_media(&messages.remove(first));
    }
    Some(dropped)
}

fn count_media(message: &Message) -> usize {
    match &message.content {
        rullama_chat::Content::Parts(parts) => {
            parts.iter().filter(|part| matches!(part.kind.as_str(), "image" | "audio")).count()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_messages_go_first() {
        let message = |role: &str| Message::new(role, "x");
        let roles = ["system", "user", "assistant", "tool", "user", "assistant", "user"];
        let mut conversation = Conversation {
            messages: roles.iter().map(|role| message(role)).collect(),
            ..Conversation::default()
        };
        let left = |conversation: &Conversation| {
            conversation.messages.iter().map(|message| message.role.clone()).collect::<Vec<_>>()
        };
        assert_eq!(drop_oldest(&mut conversation), Some(0));
        assert_eq!(
            left(&conversation),
            ["system", "assistant", "tool", "user", "assistant", "user"]
        );
        assert_eq!(drop_oldest(&mut conversation), Some(0));
        assert_eq!(left(&conversation), ["system", "user", "assistant", "user"], "with its result");
        drop_oldest(&mut conversation);
        drop_oldest(&mut conversation);
        assert_eq!(left(&conversation), ["system", "user"]);
        assert_eq!(drop_oldest(&mut conversation), None, "the last message stays");
    }

    #[test]
    fn earlier_tokens_come_first() {
        let mut prompt = Prompt::tokens(vec![2, 7, 8]);
        continue_from(&mut prompt, &[], Some(2));
        assert_eq!(prompt.tokens, [2, 7, 8]);
        continue_from(&mut prompt, &[2, 5], Some(2));
        assert_eq!(prompt.tokens, [2, 5, 7, 8]);
        continue_from(&mut prompt, &[1], Some(9));
        assert_eq!(prompt.tokens, [1, 2, 5, 7, 8]);
    }
}
