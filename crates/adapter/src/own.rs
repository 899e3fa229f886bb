//! rullama's own safetensors: `lora.blk.{layer}.{projection}.{A|B}`, with rank, alpha and targets in the file's metadata.

use crate::{
    Adapter, EMBEDDING, Format, HEAD,
    container::Container,
    error::AdapterError,
    halves::{Half, Halves},
    tensors::matrix,
};

const PREFIX: &str = "lora.blk.";
/// The projection whose name differs from its tensor's.
const OUTPUT: (&str, &str) = ("attn_o", "attn_output");
const SAME: [&str; 6] = ["attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up", "ffn_down"];

/// Whether the file has rullama's own format.
pub(crate) fn is_own(file: &Container) -> bool {
    let named = file.tensors().first().is_some_and(|(name, _)| name.starts_with(PREFIX));
    named || (file.metadata("rank").is_some() && file.metadata("target_modules").is_some())
}

pub(crate) async fn read(file: &Container) -> Result<Adapter, AdapterError> {
    let metadata = |key: &'static str| {
        let missing = || AdapterError::BadNumber {
            key,
            value: String::new(),
            wanted: "in the file's metadata",
        };
        file.metadata(key).ok_or_else(missing)
    };
    let rank = metadata("rank")?;
    let rank = rank.trim().parse().ok().filter(|rank: &usize| *rank > 0).ok_or_else(|| {
        AdapterError::BadNumber { key: "rank", value: rank.into(), wanted: "a whole number" }
    })?;
    let alpha = metadata("alpha")?;
    let alpha =
        alpha.trim().parse().ok().filter(|alpha: &f32| alpha.is_finite()).ok_or_else(|| {
            AdapterError::BadNumber { key: "alpha", value: alpha.into(), wanted: "a number" }
        })?;
    let targets: Vec<&str> = metadata("target_modules")?.split(',').map(str::trim).collect();

    let (mut halves, mut unknown, mut ignored) = (Halves::default(), Vec::new(), Vec::new());
    for (name, info) in file.tensors() {
        let Some((tensor, projection, half)) = parsed(&name) else {
            unknown.push(name);
            continue;
        };
        if !targets.contains(&projection) {
            ignored.push(name);
            continue;
        }
        let matrix = matrix(file, &name, info).await?;
        // The embedding is a row lookup: its A and B are swapped and transposed.
        match (tensor == EMBEDDING, half) {
            (true, Half::A) => halves.add(&tensor, Half::B, matrix.transposed())?,
            (true, Half::B) => halves.add(&tensor, Half::A, matrix.transposed())?,
            (false, half) => halves.add(&tensor, half, matrix)?,
        }
    }
    if !unknown.is_empty() {
        return Err(AdapterError::UnknownTensors { names: unknown });
    }
    let pairs = halves.pairs(|tensor, found| {
        if found == rank {
            return Ok(alpha / rank as f32);
        }
        Err(AdapterError::WrongRank { tensor: tensor.into(), found, wanted: rank })
    })?;
    let (name, format) = (file.name().to_owned(), Format::Rullama);
    Ok(Adapter { name, format, architecture: None, base_model: None, pairs, ignored })
}

/// Tensor of the base model, projection, half.
fn parsed(name: &str) -> Option<(String, &str, Half)> {
    let (layer, rest) = name.strip_prefix(PREFIX)?.split_once('.')?;
    let layer: u32 = layer.parse().ok()?;
    let (projection, half) = rest.split_once('.')?;
    let half = match half {
        "A" => Half::A,
        "B" => Half::B,
        _ => return None,
    };
    let tensor = match projection {
        "lm_head" => HEAD.into(),
        "embed_tokens" => EMBEDDING.into(),
        name if name == OUTPUT.0 => format!("blk.{layer}.{}.weight", OUTPUT.1),
        name if SAME.contains(&name) => format!("blk.{layer}.{name}.weight"),
        _ => return None,
    };
    Some((tensor, projection, half))
}
