//! A random adapter, to measure the cost of adapters.

use rullama_adapter::{Adapter, Format, Pair};
use rullama_runtime::Model;

/// The projections of a layer that adapters usually change.
const PROJECTIONS: [&str; 7] =
    ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

/// Random factors of this rank for every projection of the model; each number gives others.
pub(super) fn adapter(model: &Model, rank: usize, number: usize) -> Adapter {
    let rank = rank.max(1);
    let mut pairs = Vec::new();
    for layer in 0..model.config().layers.len() {
        for name in PROJECTIONS {
            // Layers that reuse other layers' keys and values may have these tensors in the file.
            let unused = name == "attn_k" || name == "attn_v";
            if unused && !model.config().layers[layer].owns_cache() {
                continue;
            }
            let tensor = format!("blk.{layer}.{name}.weight");
            let Some(info) = model.gguf().tensor(&tensor) else { continue };
            // The sizes of a loaded model fit in memory.
            let (rows, columns) = (info.rows() as usize, info.row_len() as usize);
            let seed = pairs.len() + number * 7919;
            let (a, b) = (values(rank * columns, seed), values(rows * rank, seed + 1));
            pairs.push(Pair { tensor, experts: 1, rank, rows, columns, a, b, scale: 1.0 });
        }
    }
    Adapter {
        name: "random numbers".into(),
        format: Format::Rullama,
        architecture: None,
        base_model: None,
        pairs,
        ignored: Vec::new(),
    }
}

/// Pseudo-random values of about 1e-3, the same in every run.
fn values(count: usize, seed: usize) -> Vec<f32> {
    let mut state = 0x9E37_79B9_u32 ^ seed as u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next() * 2e-3).collect()
}
