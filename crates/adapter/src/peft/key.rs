//! Tensor names in PEFT files: `base_model.model.<module>.lora_A[.<adapter>].weight`.

use crate::{error::AdapterError, halves::Half};

/// The meaning of a tensor name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key<'a> {
    /// A factor of a module; `lookup` for an embedding, otherwise a linear layer.
    Factor { module: &'a str, half: Half, lookup: bool },
    /// A weight of the base model, stored next to the factors of an embedding. It has no effect.
    Base,
    /// Any other name.
    Unknown,
}

/// Markers of factors: half, whether of an embedding.
const FACTORS: [(&str, Half, bool); 4] = [
    ("lora_A", Half::A, false),
    ("lora_B", Half::B, false),
    ("lora_embedding_A", Half::A, true),
    ("lora_embedding_B", Half::B, true),
];

impl<'a> Key<'a> {
    /// # Errors
    /// If the name belongs to an unsupported feature.
    pub(super) fn parse(name: &'a str) -> Result<Self, AdapterError> {
        if name.contains(".lora_magnitude_vector") {
            return Err(AdapterError::Unsupported { what: "magnitudes (DoRA)" });
        }
        if name.contains(".modules_to_save.") {
            return Err(AdapterError::Unsupported {
                what: "fully trained modules (modules_to_save)",
            });
        }
        let path = name.strip_prefix("base_model.model.").unwrap_or(name);
        for (marker, half, lookup) in FACTORS {
            let Some((module, rest)) = split_at_part(path, marker) else { continue };
            if module.contains(".experts") {
                return Err(AdapterError::Unsupported {
                    what: "expert LoRA pairs in the PEFT format",
                });
            }
            return match rest.rsplit('.').next() {
                Some("bias") => Err(AdapterError::Unsupported { what: "LoRA biases (lora_bias)" }),
                Some("weight") => Ok(Self::Factor { module, half, lookup }),
                // Embedding factors are parameters, not modules, so their names have no `.weight`.
                _ if lookup => Ok(Self::Factor { module, half, lookup }),
                _ => Ok(Self::Unknown),
            };
        }
        if path.ends_with(".base_layer.weight") {
            return Ok(Self::Base);
        }
        let whole = path.ends_with("embed_tokens.weight") || path.ends_with("lm_head.weight");
        if whole {
            return Err(AdapterError::Unsupported {
                what: "a full token embedding table (new tokens?)",
            });
        }
        Ok(Self::Unknown)
    }
}

/// The parts of a path before and after the segment `part`.
fn split_at_part<'a>(path: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    let (front, rest) = path.split_once(&format!(".{part}"))?;
    if rest.is_empty() { Some((front, rest)) } else { Some((front, rest.strip_prefix('.')?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        let factor = |module, half, lookup| Key::Factor { module, half, lookup };
        for (name, wanted) in [
            ("base_model.model.m.q_proj.lora_A.weight", factor("m.q_proj", Half::A, false)),
            ("base_model.model.m.q_proj.lora_B.default.weight", factor("m.q_proj", Half::B, false)),
            ("m.q_proj.lora_B.weight", factor("m.q_proj", Half::B, false)),
            (
                "base_model.model.embed_tokens.lora_embedding_A",
                factor("embed_tokens", Half::A, true),
            ),
            (
                "base_model.model.embed_tokens.lora_embedding_B.default",
                factor("embed_tokens", Half::B, true),
            ),
            ("base_model.model.embed_tokens.base_layer.weight", Key::Base),
            ("base_model.model.m.q_proj.weight", Key::Unknown),
            ("base_model.model.m.q_proj.lora_Ax.weight", Key::Unknown),
        ] {
            assert_eq!(Key::parse(name).expect("nothing refused"), wanted, "{name}");
        }
    }

    #[test]
    fn unsupported_features_are_refused() {
        for name in [
            "base_model.model.m.q_proj.lora_magnitude_vector.weight",
            "base_model.model.lm_head.modules_to_save.weight",
            "base_model.model.m.q_proj.lora_B.bias",
            "base_model.model.lm_head.weight",
            "base_model.model.m.layers.0.experts.lora_A.weight",
        ] {
            let refused = matches!(Key::parse(name), Err(AdapterError::Unsupported { .. }));
            assert!(refused, "{name}");
        }
    }
}
