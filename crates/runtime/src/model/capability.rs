//! Capabilities of a model, from its file's header.

use rullama_chat::{Capability, ChatTemplate, ModelRole};
use rullama_gguf::Gguf;

use super::ModelKind;
use crate::vocabulary;

/// Capabilities of a model in this file, with those of its projector files.
pub fn capabilities_of<'a>(
    gguf: &Gguf,
    projectors: impl IntoIterator<Item = &'a Gguf>,
) -> Vec<Capability> {
    capabilities_with(gguf, projectors, vocabulary::template(gguf).ok().as_ref())
}

/// [`capabilities_of`] a model with this chat template.
pub(super) fn capabilities_with<'a>(
    gguf: &Gguf,
    projectors: impl IntoIterator<Item = &'a Gguf>,
    template: Option<&ChatTemplate>,
) -> Vec<Capability> {
    let role = match ModelKind::of(gguf) {
        ModelKind::Decoder => ModelRole::Decoder,
        ModelKind::Diffusion => ModelRole::Diffusion,
        ModelKind::Embedding => ModelRole::Embedding,
        ModelKind::Drafter => ModelRole::Other,
    };
    // Of the families, only Gemma has encoders.
    let gemma = matches!(gguf.str("general.architecture"), Ok("gemma4" | "gemma3"));
    let (mut images, mut audio) = if gemma { encoders(gguf) } else { (false, false) };
    for projector in projectors {
        let more = encoders(projector);
        (images, audio) = (images || more.0, audio || more.1);
    }
    Capability::of_model(role, template, images, audio)
}

/// Whether a file has encoders of images and of audio.
fn encoders(gguf: &Gguf) -> (bool, bool) {
    let has = |start: &str| gguf.tensors().iter().any(|tensor| tensor.name().starts_with(start));
    (has("v."), has("a."))
}
