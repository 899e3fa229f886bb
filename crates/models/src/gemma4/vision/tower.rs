//! The tower as a graph.

use rullama_engine::{
    graph::{Type, Value},
    ops::{Branch, ClampedPrologue, Patches, rope_table},
};

use super::{
    super::{
        EncoderGraph,
        clamps::{Clamps, Clipped},
    },
    VisionConfig,
};
use crate::{build::Build, tensors::Catalog};

/// Base of the rotation.
const ROPE_BASE: f64 = 100.0;
/// Soft tokens that an image is resized to at most.
const MOST_TOKENS: usize = 1120;

/// An image cut into patches.
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
    /// The image's pixels, a word each: red in the lowest bits, then green, blue and alpha.
    pub const PIXELS: &'static str = "pixels";
    /// The learned numbers of each patch's column and row, added up `[n, e]`.
    pub const POSITIONS: &'static str = "positions";
    /// Cosines and sines `[n, head/2, 2]`, made by [`rope`].
    pub const ROPE: &'static str = "rope";
}

/// Writes the graph for images of one grid, on a device whose kernels can reach so many bytes of a value.
///
/// # Panics
/// If the grid cannot be pooled, or the catalogue is not of this configuration.
pub fn tower(
    config: &VisionConfig,
    catalog: &Catalog,
    clamps: &Clamps,
    grid: Grid,
    most_bytes: u64,
) -> EncoderGraph {
    let n = grid.patches();
    // Images of all sizes take the same weights, so the largest one decides.
    let row_bytes = (MOST_TOKENS * config.pool * config.pool * size_of::<f32>()) as u64;
    let most_rows = usize::try_from(most_bytes / row_bytes).unwrap_or(usize::MAX);
    let mut b = Clipped { b: Build::new(catalog, config.eps, false), clamps, most_rows };
    let patches = patches(&mut b.b, grid, config.patch, (2.0, 0.5));
    let positions = b.b.input(VisionInputs::POSITIONS, Type::f32([n, config.width]));
    let h = b.b.linear(patches, "v.patch_embd");
    let h = b.b.graph.add(h, positions);
    b.b.tap(h, "patch_embed");
    let mut stream = Stream::Made(h);
    for layer in 0..config.layers {
        b.b.enter(&format!("v.blk.{layer}"));
        stream = block(&mut b, stream, config, (n, layer));
    }
    let h = match stream {
        Stream::Made(h) => h,
        Stream::Open(branch) => b.b.graph.add_norm(&branch, config.eps),
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

/// An image cut into patches of this side, each in the order channel, row, column; numbers from 0 to 1 become those of a range.
pub(super) fn patches(b: &mut Build<'_>, grid: Grid, side: usize, range: (f32, f32)) -> Value {
    let cut = Patches { columns: grid.columns, rows: grid.rows, side, range };
    let pixels = b.input(VisionInputs::PIXELS, Type::u32([cut.pixels()]));
    b.graph.patches(pixels, cut)
}

/// The residual stream between blocks.
#[derive(Clone, Copy)]
enum Stream {
    Made(Value),
    /// A branch is still to be added; the next product does it on its way.
    Open(Branch),
}

fn block(
    b: &mut Clipped<'_>,
    stream: Stream,
    config: &VisionConfig,
    (n, layer): (usize, usize),
) -> Stream {
    let (eps, head) = (config.eps, config.head());
    let start = match stream {
        Stream::Made(h) => b.after_norm(h, "ln1", eps),
        Stream::Open(branch) => {
            ClampedPrologue::ResidualAdd { branch, next: b.b.weight("ln1"), eps }
        }
    };
    let (h, heads) = b.products(&start, &["attn_q", "attn_k", "attn_v"]);
    let h = match (h, stream) {
        (Some(h), _) | (None, Stream::Made(h)) => h,
        (None, Stream::Open(branch)) => branch.residual,
    };
    tap_layer(b, h, layer);
    let rope = b.b.input(VisionInputs::ROPE, Type::f32([n, head / 2, 2]));
    let norms = ["attn_q_norm", "attn_k_norm"].map(|name| b.b.weight(name));
    let o = b.b.graph.attention_rope_2d([heads[0], heads[1], heads[2]], norms, rope, eps);
    let branch = b.linear(o, "attn_out");
    let weight = b.b.weight("attn_post_norm");
    let branch = Branch { residual: h, branch, weight, scale: None, lora_b: None, folded: 0 };

    let start = ClampedPrologue::ResidualAdd { branch, next: b.b.weight("ln2"), eps };
    let (joined, both) = b.products(&start, &["ffn_gate", "ffn_up"]);
    let start = match both[0].value == both[1].value {
        true => ClampedPrologue::Geglu(both[0].value),
        false => ClampedPrologue::Gated(both[0].value, both[1].value),
    };
    let (_, branch) = b.product(&start, "ffn_down");
    let weight = b.b.weight("ffn_post_norm");
    let scale = b.b.has("out_scale.weight").then(|| b.b.weight("out_scale"));
    Stream::Open(Branch {
        residual: joined.unwrap_or(h),
        branch,
        weight,
        scale,
        lora_b: None,
        folded: 0,
    })
}

/// Names what came out of the layer before this one.
fn tap_layer(b: &mut Clipped<'_>, h: Value, layer: usize) {
    if let Some(before) = layer.checked_sub(1) {
        b.b.tap(h, format!("layer.{before}.out"));
    }
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
