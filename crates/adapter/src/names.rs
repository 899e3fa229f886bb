//! Module names of checkpoints and the GGUF tensors they correspond to.

use crate::{EMBEDDING, HEAD};

/// Modules of a layer: name in checkpoints, name in GGUF files.
const LAYER: [(&str, &str); 10] = [
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("per_layer_input_gate", "inp_gate"),
    ("per_layer_projection", "proj"),
    ("router.proj", "ffn_gate_inp"),
];

/// Modules outside of layers.
const MODEL: [(&str, &str); 3] = [
    ("per_layer_model_projection", "per_layer_model_proj.weight"),
    ("embed_tokens", EMBEDDING),
    ("lm_head", HEAD),
];

/// Parts of a checkpoint outside of the language model.
const TOWERS: [&str; 4] = ["vision_tower", "audio_tower", "embed_vision", "embed_audio"];

/// Whether a module belongs to a vision or audio encoder.
pub(crate) fn of_tower(module: &str) -> bool {
    TOWERS.iter().any(|tower| module.split('.').any(|part| part == *tower))
}

/// The tensor of a module, by the suffix of its name: prefixes differ between checkpoints.
pub(crate) fn tensor(module: &str) -> Option<String> {
    for (end, tensor) in MODEL {
        if ends_with(module, end).is_some() {
            return Some(tensor.into());
        }
    }
    LAYER.iter().find_map(|(end, name)| {
        let front = ends_with(module, end)?;
        let (front, layer) = front.rsplit_once('.').unwrap_or(("", front));
        ends_with(front, "layers")?;
        let layer: u32 = layer.parse().ok()?;
        Some(format!("blk.{layer}.{name}.weight"))
    })
}

/// The part of a module path before the suffix `end`.
fn ends_with<'a>(module: &'a str, end: &str) -> Option<&'a str> {
    let front = module.strip_suffix(end)?;
    if front.is_empty() { Some("") } else { front.strip_suffix('.') }
}

/// The module of a tensor, as multimodal checkpoints name it.
pub fn module(tensor: &str) -> Option<String> {
    if tensor == HEAD {
        return Some("lm_head".into());
    }
    if let Some((module, _)) = MODEL.iter().find(|(_, name)| *name == tensor) {
        return Some(format!("model.language_model.{module}"));
    }
    let (layer, name) = tensor.strip_prefix("blk.")?.strip_suffix(".weight")?.split_once('.')?;
    let layer: u32 = layer.parse().ok()?;
    let (module, _) = LAYER.iter().find(|(_, known)| *known == name)?;
    Some(format!("model.language_model.layers.{layer}.{module}"))
}

/// Names for a message: the first few, escaped.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} others") } else { String::new() };
    shown.join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_matched_by_suffix() {
        for (path, wanted) in [
            ("model.language_model.layers.3.self_attn.q_proj", Some("blk.3.attn_q.weight")),
            ("model.layers.12.mlp.down_proj", Some("blk.12.ffn_down.weight")),
            ("layers.0.self_attn.o_proj", Some("blk.0.attn_output.weight")),
            ("model.layers.0.per_layer_input_gate", Some("blk.0.inp_gate.weight")),
            ("model.layers.0.per_layer_projection", Some("blk.0.proj.weight")),
            (
                "model.language_model.per_layer_model_projection",
                Some("per_layer_model_proj.weight"),
            ),
            ("model.language_model.embed_tokens", Some(EMBEDDING)),
            ("lm_head", Some(HEAD)),
            ("model.layers.x.mlp.down_proj", None),
            ("model.players.1.mlp.down_proj", None),
            ("model.layers.1.router.proj", Some("blk.1.ffn_gate_inp.weight")),
            ("model.layers.1.router.scale", None),
            ("model.layers.1.mlp.xdown_proj", None),
        ] {
            assert_eq!(tensor(path).as_deref(), wanted, "{path}");
        }
    }

    #[test]
    fn tensor_names_round_trip_through_modules() {
        let names = LAYER.iter().map(|(_, name)| format!("blk.7.{name}.weight"));
        for name in names.chain(MODEL.iter().map(|(_, name)| (*name).into())) {
            let module = module(&name).expect("every tensor has a module");
            assert_eq!(tensor(&module), Some(name));
        }
        assert_eq!(module("blk.0.ffn_down_exps.weight"), None);
    }

    #[test]
    fn towers_are_matched_by_whole_path_segments() {
        assert!(of_tower("model.vision_tower.encoder.layers.0.self_attn.q_proj"));
        assert!(!of_tower("model.language_model.layers.0.self_attn.q_proj"));
    }
}
