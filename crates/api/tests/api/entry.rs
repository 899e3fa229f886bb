//! The entry point for untrusted bytes, shared with the fuzzer.

use rullama_api::request::{anthropic, llamacpp, ollama, openai};
use rullama_api::{ApiError, ChatInput, GenerationRequest, Input, MediaKind};
use rullama_chat::{Content, Family, render};

/// Runs all parsers on one body; returns their errors.
pub(crate) fn read_all(body: &[u8]) -> Vec<ApiError> {
    let form = vec![
        openai::FormField { name: "model".into(), bytes: b"m".to_vec() },
        openai::FormField { name: "file".into(), bytes: body.to_vec() },
    ];
    let generations = [
        ollama::chat(body),
        ollama::generate(body),
        openai::chat_completions(body),
        openai::completions(body),
        openai::responses(body).map(|request| request.generation),
        openai::transcriptions(form).map(|request| request.generation),
        anthropic::messages(body),
        anthropic::count_tokens(body),
    ];
    let mut errors = Vec::new();
    for generation in generations {
        match generation {
            Ok(request) => check(&request),
            Err(error) => errors.push(error),
        }
    }
    errors.extend(ollama::embed(body).err());
    errors.extend(ollama::embeddings(body).err());
    errors.extend(openai::embeddings(body).err());
    errors.extend(ollama::show(body).err());
    errors.extend(ollama::pull(body).err());
    errors.extend(ollama::delete(body).err());
    errors.extend(ollama::copy(body).err());
    errors.extend(ollama::create(body).err());
    errors.extend(llamacpp::tokenize(body).err());
    errors.extend(llamacpp::detokenize(body).err());
    errors.extend(llamacpp::apply_template(body).err());
    errors.extend(llamacpp::lora_adapters(body).err());
    errors
}

/// Invariants of every accepted request.
fn check(request: &GenerationRequest) {
    assert!(request.n >= 1 && request.choices() >= 1);
    assert!(request.logprobs.is_none_or(|top| top <= 20));
    if let Input::Chat(input) = &request.input {
        let messages = &input.conversation.messages;
        let parts = messages.iter().flat_map(|message| match &message.content {
            Content::Parts(parts) => parts.as_slice(),
            _ => &[],
        });
        let places: Vec<u64> = parts.filter_map(|part| part.rest.get("media")?.as_u64()).collect();
        let expected: Vec<u64> = (0..input.media.len() as u64).collect();
        assert_eq!(places, expected, "files stand in the order of their parts");
        check_markers(input);
        for message in messages {
            assert!(message.role != "tool" || message.tool_call_id.is_some());
            for call in &message.tool_calls {
                assert!(call.arguments.is_object() && call.id.is_some());
            }
        }
    }
}

/// Files and markers match one to one and are in the same order.
fn check_markers(input: &ChatInput) {
    let Ok(prompt) = render(&input.conversation, Family::Small) else { return };
    let mut kinds = Vec::new();
    for span in prompt.spans().iter().filter(|span| span.trusted) {
        for piece in span.text.split("<|").skip(1) {
            kinds.extend(piece.starts_with("image|>").then_some(MediaKind::Image));
            kinds.extend(piece.starts_with("audio|>").then_some(MediaKind::Audio));
        }
    }
    let expected: Vec<MediaKind> = input.media.iter().map(|media| media.kind).collect();
    assert_eq!(kinds, expected);
}
