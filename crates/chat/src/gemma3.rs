//! Gemma 3, MedGemma and TranslateGemma: user and model turns, the system text at the start of the first one.

use serde_json::Value;

use crate::languages::language;
use crate::markers::{BOS, OLD_IMAGE, OLD_TURN_CLOSE, OLD_TURN_OPEN};
use crate::python::strip;
use crate::text::split_system;
use crate::{ChatError, Content, Conversation, Family, Message, Part, Prompt, RenderOptions};

/// What Google's examples begin the system text with to let MedGemma think.
const THINK_SILENTLY: &str = "SYSTEM INSTRUCTION: think silently if needed.";

/// Renders a conversation. With repairs, any order of roles is accepted, as in other engines.
pub(crate) fn render(
    conversation: &Conversation,
    options: RenderOptions,
) -> Result<Prompt, ChatError> {
    if !conversation.tools.is_empty() {
        return Err(ChatError::NoTools);
    }
    let mut out = Prompt::default();
    out.trusted(BOS);
    let (system, messages) = split_system(&conversation.messages);
    let thinks = conversation.thinking && options.family == Family::MedGemma;
    let first = usize::from(system.is_some());
    for (i, message) in messages.iter().enumerate() {
        if !options.repair && (message.role == "user") != (i % 2 == 0) {
            return Err(ChatError::RoleOrder { index: first + i, role: message.role.clone() });
        }
        open_turn(&mut out, &message.role);
        if thinks && i == 0 {
            out.trusted(THINK_SILENTLY);
            out.trusted(if system.is_some() { " " } else { "\n\n" });
        }
        if let Some(system) = system.filter(|_| i == 0) {
            system_text(&mut out, system)?;
        }
        content(&mut out, message, options)?;
        close_turn(&mut out);
    }
    if conversation.add_generation_prompt {
        open_turn(&mut out, "model");
    }
    Ok(out)
}

/// Opens a turn; the assistant's role is written as `model`.
pub(crate) fn open_turn(out: &mut Prompt, role: &str) {
    out.trusted(OLD_TURN_OPEN);
    match role {
        "assistant" | "model" => out.trusted("model"),
        "user" | "developer" => out.trusted(role),
        other => out.untrusted(other),
    }
    out.trusted("\n");
}

pub(crate) fn close_turn(out: &mut Prompt) {
    out.trusted(OLD_TURN_CLOSE);
    out.trusted("\n");
}

/// The system text verbatim; of several parts, the first.
fn system_text(out: &mut Prompt, system: &Message) -> Result<(), ChatError> {
    match &system.content {
        Content::Text(text) => out.untrusted(text),
        Content::Parts(parts) => {
            out.untrusted(parts.first().and_then(|part| part.text.as_deref()).unwrap_or_default());
        }
        Content::None => {}
        Content::Other(_) => return Err(ChatError::ContentShape { role: system.role.clone() }),
    }
    out.trusted("\n\n");
    Ok(())
}

fn content(out: &mut Prompt, message: &Message, options: RenderOptions) -> Result<(), ChatError> {
    match &message.content {
        Content::Text(text) => out.untrusted(strip(text)),
        Content::Parts(parts) => {
            for part in parts {
                match part.kind.as_str() {
                    "image" | "image_url" => out.trusted(OLD_IMAGE),
                    "text" if options.family == Family::TranslateGemma => translation(out, part)?,
                    "text" => out.untrusted(strip(part.text.as_deref().unwrap_or_default())),
                    _ => {}
                }
            }
        }
        Content::None if options.repair => {}
        Content::None | Content::Other(_) => {
            return Err(ChatError::ContentShape { role: message.role.clone() });
        }
    }
    Ok(())
}

/// TranslateGemma's instruction around a text with language codes; a text without codes as it is.
fn translation(out: &mut Prompt, part: &Part) -> Result<(), ChatError> {
    let text = strip(part.text.as_deref().unwrap_or_default());
    let code = |key: &str| part.rest.get(key).and_then(Value::as_str);
    let (Some(from_code), Some(to_code)) = (code("source_lang_code"), code("target_lang_code"))
    else {
        out.untrusted(text);
        return Ok(());
    };
    let (from, to) = (language(from_code)?, language(to_code)?);
    let instruction = format!(
        "You are a professional {from} ({from_code}) to {to} ({to_code}) translator. Your goal is to accurately convey the \
         meaning and nuances of the original {from} text while adhering to {to} grammar, vocabulary, and cultural \
         sensitivities.\nProduce only the {to} translation, without any additional explanations or commentary. Please \
         translate the following {from} text into {to}:\n\n\n"
    );
    // The language codes are user input, so the whole instruction is untrusted text.
    out.untrusted(&instruction);
    out.untrusted(text);
    Ok(())
}
