//! The tower as a list.

use rullama_engine::{
    graph::{Graph, Type, Value},
    ops::{Branch, rope_table},
};

use super::{
    super::clamps::{Clamps, Clipped},
    VisionConfig,
};
use crate::{build::Build, tensors::Catalog};

/// Base of the rotation.
const ROPE_BASE: f64 = 100.0;

/// A picture cut into patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Patches from left to right.
    pub columns: usize,
    /// Patches from top to bottom.
    pub rows: usize,
}

impl Grid {
    /// All patches.
    pub fn patches(self) -> usize {
        self.columns * self.rows
    }
}

/// Names of what the host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisionInputs;

impl VisionInputs {
    /// Patches from −1 to 1 in the order channel, row, column `[n, 3 · side²]`.
    pub const PATCHES: &'static str = "patches";
    /// The learned numbers of each patch's column and row, added up `[n, e]`.
    pub const POSITIONS: &'static str = "positions";
    /// Cosines and sines `[n, head/2, 2]`, made by [`rope`].
    pub const ROPE: &'static str = "rope";
}

/// A list for one grid, and what comes out: soft tokens `[n, d]`.
#[derive(Debug)]
pub struct Tower {
    /// The list.
    pub graph: Graph,
    /// The soft tokens.
    pub result: Value,
}

/// Writes the list for pictures of one grid.
///
/// # Panics
/// If the grid cannot be pooled, or the catalogue is not of this configuration.
pub fn tower(config: &VisionConfig, catalog: &Catalog, clamps: &Clamps, grid: Grid) -> Tower {
    let n = grid.patches();
    let mut b = Clipped { b: Build::new(catalog, config.eps, false), clamps };
    let patches = b.b.input(VisionInputs::PATCHES, Type::f32([n, config.patch_numbers()]));
    let positions = b.b.input(VisionInputs::POSITIONS, Type::f32([n, config.width]));
    let h = b.b.linear(patches, "v.patch_embd");
    let mut h = b.b.graph.add(h, positions);
    b.b.tap(h, "patch_embed");
    for layer in 0..config.layers {
        b.b.enter(&format!("v.blk.{layer}"));
        h = block(&mut b, h, config, n);
        b.b.tap(h, format!("layer.{layer}.out"));
    }
    b.b.enter("");
    let mut b = b.b;
    let t = b.graph.pool(h, grid.columns, config.pool, (config.width as f32).sqrt());
    let t = match b.has("v.std_bias") && b.has("v.std_scale") {
        true => {
            let (bias, scale) = (b.tensor("v.std_bias"), b.tensor("v.std_scale"));
            b.graph.standardise(t, bias, scale)
        }
        false => t,
    };
    b.tap(t, "pooled");
    let t = b.graph.rms_norm(t, None, config.eps);
    let result = b.linear(t, "mm.input_projection");
    b.tap(result, "embeddings");
    b.graph.keep(result);
    Tower { graph: b.graph, result }
}

fn block(b: &mut Clipped<'_>, h: Value, config: &VisionConfig, n: usize) -> Value {
    let (eps, head) = (config.eps, config.head());
    let x = b.b.norm(h, "ln1");
    let [q, k, v] = ["attn_q", "attn_k", "attn_v"].map(|name| b.linear(x, name));
    let rope = b.b.input(VisionInputs::ROPE, Type::f32([n, head / 2, 2]));
    let (q_norm, k_norm) = (b.b.weight("attn_q_norm"), b.b.weight("attn_k_norm"));
    let q = b.b.graph.head_norm_rope_plane(q, q_norm, rope, eps);
    let k = b.b.graph.head_norm_rope_plane(k, k_norm, rope, eps);
    let v = b.b.graph.head_norm(v, head, eps);
    let o = b.b.graph.attention_everyone(q, k, v);
    let o = b.linear(o, "attn_out");
    let h = joined(b, h, o, "attn_post_norm", eps);

    let x = b.b.norm(h, "ln2");
    let [gate, up] = ["ffn_gate", "ffn_up"].map(|name| b.linear(x, name));
    let m = b.b.graph.geglu(gate, up);
    let m = b.linear(m, "ffn_down");
    let h = joined(b, h, m, "ffn_post_norm", eps);
    if !b.b.has("out_scale.weight") {
        return h;
    }
    let scale = b.b.weight("out_scale");
    b.b.graph.scale_by(h, scale)
}

/// The stream behind a branch and its norm.
fn joined(b: &mut Clipped<'_>, residual: Value, branch: Value, norm: &str, eps: f32) -> Value {
    let weight = b.b.weight(norm);
    b.b.graph.add_norm(&Branch { residual, branch, weight, scale: None, low: None }, eps)
}

/// Cosines and sines of a grid's patches, row by row: the first half of a head turns with the column, the second with the row.
pub fn rope(grid: Grid, head: usize) -> Vec<f32> {
    let axis = |places: usize| rope_table(0..places as u32, ROPE_BASE, head / 2, None);
    let (columns, rows) = (axis(grid.columns), axis(grid.rows));
    let each = head / 2;
    let patch = |index: usize| {
        let (x, y) = (index % grid.columns, index / grid.columns);
        [&columns[x * each..][..each], &rows[y * each..][..each]].concat()
    };
    (0..grid.patches()).flat_map(patch).collect()
}
