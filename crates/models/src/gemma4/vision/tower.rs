//! The vision tower graph.

use rullama_engine::{
    graph::{Type, Value},
    ops::{Branch, ClampedPrologue, Patches, rope_table},
};

use super::{
    super::clamps::{ClampedBuild, Clamps},
    VisionConfig,
};
use crate::{build::Build, encoder::EncoderGraph, tensors::Catalog};

/// RoPE base.
const ROPE_BASE: f64 = 100.0;
/// Maximum soft tokens of a resized image.
const MAX_TOKENS: usize = 1120;

/// Patch grid of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Patches from left to right.
    pub columns: usize,
    /// Patches from top to bottom.
    pub rows: usize,
}

impl Grid {
    /// Number of patches.
    pub fn patches(self) -> usize {
        self.columns * self.rows
    }
}

/// Names of inputs that the host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisionInputs;

impl VisionInputs {
    /// Pixels, one `u32` each: red in the lowest bits, then green, blue and alpha.
    pub const PIXELS: &'static str = "pixels";
    /// Sum of the learned position embeddings of each patch's column and row `[n, e]`.
    pub const POSITIONS: &'static str = "positions";
    /// RoPE table `[n, head/2, 2]`, computed by [`rope`].
    pub const ROPE: &'static str = "rope";
}

/// Builds the graph for images of one grid, on a device that can bind at most `most_bytes` of a value.
///
/// # Panics
/// If the grid cannot be pooled, or the catalogue does not match the configuration.
pub fn tower(
    config: &VisionConfig,
    catalog: &Catalog,
    clamps: &Clamps,
    grid: Grid,
    most_bytes: u64,
) -> EncoderGraph {
    let n = grid.patches();
    // All image sizes share the stacked weights, so the largest image sets the row limit.
    let row_bytes = (MAX_TOKENS * config.pool * config.pool * size_of::<f32>()) as u64;
    let max_rows = usize::try_from(most_bytes / row_bytes).unwrap_or(usize::MAX);
    let mut b = ClampedBuild { b: Build::new(catalog, config.eps, false), clamps, max_rows };
    let patches = patches(&mut b.b, grid, config.patch, (2.0, 0.5));
    let positions = b.b.input(VisionInputs::POSITIONS, Type::f32([n, config.width]));
    let h = b.b.linear(patches, "v.patch_embd");
    let h = b.b.graph.add(h, positions);
    b.b.tap(h, "patch_embed");
    let mut stream = Stream::Computed(h);
    for layer in 0..config.layers {
        b.b.enter(&format!("v.blk.{layer}"));
        stream = block(&mut b, stream, config, (n, layer));
    }
    let h = match stream {
        Stream::Computed(h) => h,
        Stream::Pending(branch) => b.b.graph.add_norm(&branch, config.eps),
    };
    tap_layer(&mut b, h, config.layers);
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
    EncoderGraph { graph: b.graph, result }
}

/// An image cut into patches of this side, each in the order channel, row, column; pixel values 0 to 1 are mapped to a range.
pub(crate) fn patches(b: &mut Build<'_>, grid: Grid, side: usize, range: (f32, f32)) -> Value {
    let cut = Patches { columns: grid.columns, rows: grid.rows, side, range };
    let pixels = b.input(VisionInputs::PIXELS, Type::u32([cut.pixels()]));
    b.graph.patches(pixels, cut)
}

/// The residual stream between blocks.
#[derive(Clone, Copy)]
enum Stream {
    Computed(Value),
    /// A branch that is not added yet: the prologue of the next matmul adds it.
    Pending(Branch),
}

fn block(
    b: &mut ClampedBuild<'_>,
    stream: Stream,
    config: &VisionConfig,
    (n, layer): (usize, usize),
) -> Stream {
    let (eps, head) = (config.eps, config.head());
    let prologue = match stream {
        Stream::Computed(h) => b.after_norm(h, "ln1", eps),
        Stream::Pending(branch) => {
            ClampedPrologue::ResidualAdd { branch, next: b.b.weight("ln1"), eps }
        }
    };
    let (h, heads) = b.fused_linears(&prologue, &["attn_q", "attn_k", "attn_v"]);
    let h = match (h, stream) {
        (Some(h), _) | (None, Stream::Computed(h)) => h,
        (None, Stream::Pending(branch)) => branch.residual,
    };
    tap_layer(b, h, layer);
    let rope = b.b.input(VisionInputs::ROPE, Type::f32([n, head / 2, 2]));
    let norms = ["attn_q_norm", "attn_k_norm"].map(|name| b.b.weight(name));
    let o = b.b.graph.attention_rope_2d([heads[0], heads[1], heads[2]], norms, rope, eps);
    let branch = b.linear(o, "attn_out");
    let weight = b.b.weight("attn_post_norm");
    let branch = Branch {
        residual: h,
        branch,
        weight,
        post_norm: true,
        scale: None,
        lora_b: None,
        folded: 0,
    };

    let prologue = ClampedPrologue::ResidualAdd { branch, next: b.b.weight("ln2"), eps };
    let (joined, both) = b.fused_linears(&prologue, &["ffn_gate", "ffn_up"]);
    let prologue = match both[0].value == both[1].value {
        true => ClampedPrologue::Geglu(both[0].value),
        false => ClampedPrologue::Gated(both[0].value, both[1].value),
    };
    let (_, branch) = b.fused_linear(&prologue, "ffn_down");
    let weight = b.b.weight("ffn_post_norm");
    let scale = b.b.has("out_scale.weight").then(|| b.b.weight("out_scale"));
    Stream::Pending(Branch {
        residual: joined.unwrap_or(h),
        branch,
        weight,
        post_norm: true,
        scale,
        lora_b: None,
        folded: 0,
    })
}

/// Taps the output of the previous layer.
fn tap_layer(b: &mut ClampedBuild<'_>, h: Value, layer: usize) {
    if let Some(before) = layer.checked_sub(1) {
        b.b.tap(h, format!("layer.{before}.out"));
    }
}

/// 2-D RoPE table of a grid's patches, row by row: the first half of a head is rotated by the column, the second by the row.
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
