//! The encoder graph.

use rullama_engine::{
    graph::{Type, Value},
    ops::{HeadForm, RopePairs},
};

use super::{SiglipConfig, config::Names};
use crate::{
    build::Build,
    encoder::EncoderGraph,
    gemma4::vision::{VisionInputs, patches},
    tensors::Catalog,
};

/// Maps pixel values 0 to 1 to −1 to 1: `scale · (v − middle)`.
const RANGE: (f32, f32) = (2.0, 0.5);

/// Builds the graph. Its inputs are the pixels, the position embeddings with the bias of the patch embedding added, and a RoPE table that
/// does not rotate: its cosines are [`score_scale`].
///
/// # Panics
/// If the catalogue does not match the configuration.
pub fn encoder(config: &SiglipConfig, catalog: &Catalog) -> EncoderGraph {
    let (grid, names) = (config.grid(), &config.names);
    let n = grid.patches();
    let mut b = Build::new(catalog, config.eps, false);
    let cells = patches(&mut b, grid, config.patch, RANGE);
    let positions = b.input(VisionInputs::POSITIONS, Type::f32([n, config.width]));
    let h = b.linear(cells, names.patches);
    let mut h = b.graph.add(h, positions);
    b.tap(h, "patch_embed");
    for layer in 0..config.layers {
        b.enter(&format!("v.blk.{layer}"));
        h = block(&mut b, h, config, n);
        b.tap(h, format!("layer.{layer}.out"));
    }
    b.enter("");
    let h = norm(&mut b, h, names.post_norm, config.eps);
    let x = b.graph.pool(h, grid.columns, config.pool, 1.0);
    b.tap(x, "pooled");
    let soft_norm = b.tensor(names.soft_norm);
    let x = b.graph.rms_norm(x, Some(soft_norm), config.eps);
    let projector = b.tensor(names.projector);
    let result = b.graph.linear_t(x, projector);
    b.tap(result, "embeddings");
    b.graph.keep(result);
    EncoderGraph { graph: b.graph, result }
}

/// The factor of queries and of keys that scales attention scores by `1 / √head`.
pub fn score_scale(head: usize) -> f32 {
    (head as f64).powf(-0.25) as f32
}

/// One transformer block, with norms before its branches only.
fn block(b: &mut Build<'_>, h: Value, config: &SiglipConfig, n: usize) -> Value {
    let Names { norms, attn_out, up, down, .. } = config.names;
    let (head, eps) = (config.head(), config.eps);
    let x = norm(b, h, norms[0], eps);
    let [q, k, v] = ["attn_q", "attn_k", "attn_v"].map(|name| biased(b, x, name));
    // Heads have no norms and no rotation: the table only scales them.
    let form = HeadForm { eps, qk_norm: false, v_norm: false, pairs: RopePairs::Halves };
    let table = b.input(VisionInputs::ROPE, Type::f32([n, head / 2, 2]));
    let q = b.graph.head_norm_rope(q, table, table, form);
    let k = b.graph.head_norm_rope(k, table, table, form);
    let v = b.graph.head_norm(v, head, form);
    let x = b.graph.attention_bidirectional(q, k, v);
    let x = biased(b, x, attn_out);
    let h = b.graph.add(h, x);
    let x = norm(b, h, norms[1], eps);
    let x = biased(b, x, up);
    let x = b.graph.gelu(x);
    let x = biased(b, x, down);
    b.graph.add(h, x)
}

/// A matmul with a bias.
fn biased(b: &mut Build<'_>, x: Value, name: &str) -> Value {
    let y = b.linear(x, name);
    let bias = b.tensor(&format!("{name}.bias"));
    b.graph.add_row(y, bias)
}

/// A layer norm with a bias.
fn norm(b: &mut Build<'_>, x: Value, name: &str, eps: f32) -> Value {
    let weight = b.weight(name);
    let bias = b.tensor(&format!("{name}.bias"));
    b.graph.layer_norm(x, weight, Some(bias), eps)
}
