//! The audio tower graph.

use rullama_engine::{
    graph::{Type, Value},
    ops::{Branch, ClampedPrologue},
};

use super::{
    super::clamps::{ClampedBuild, Clamps},
    AudioConfig,
};
use crate::{build::Build, encoder::EncoderGraph, tensors::Catalog};

/// Softcap of attention scores.
const SCORE_CAP: f32 = 50.0;
/// Weight of a feed-forward branch in the residual sum (macaron half step).
const HALF_STEP: f32 = 0.5;
/// Base of the sinusoidal relative position embeddings.
const SINUSOID_BASE: f64 = 10_000.0;

/// Names of inputs that the host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioInputs;

impl AudioInputs {
    /// Log-mel features `[frames, bins]`.
    pub const FEATURES: &'static str = "features";
    /// Sinusoidal embeddings of distances 0, 1, … `[reach + 1, a]`, computed by [`distance_rows`].
    pub const DISTANCES: &'static str = "distances";
}

/// Builds the graph for clips of `frames` frames; a row attends to itself and `reach` rows before it.
///
/// # Panics
/// If there are no frames, or the catalogue does not match the configuration.
pub fn tower(
    config: &AudioConfig,
    catalog: &Catalog,
    clamps: &Clamps,
    frames: usize,
    reach: usize,
) -> EncoderGraph {
    // No weights are stacked here, so there is no row limit.
    let b = Build::new(catalog, config.eps, false);
    let mut b = ClampedBuild { b, clamps, max_rows: usize::MAX };
    let mut h = subsample(&mut b.b, config, frames);
    b.b.tap(h, "subsample");
    let distances = b.b.input(AudioInputs::DISTANCES, Type::f32([reach + 1, config.width]));
    for layer in 0..config.layers {
        b.b.enter(&format!("a.blk.{layer}"));
        h = half_step(&mut b, h, "", config.eps);
        h = attention(&mut b, h, config, distances);
        h = light_convolution(&mut b, h, config.eps);
        h = half_step(&mut b, h, "_1", config.eps);
        h = b.b.norm(h, config.names.block_end);
        b.b.tap(h, format!("layer.{layer}.out"));
    }
    b.b.enter("");
    let mut b = b.b;
    let y = b.linear(h, config.names.out);
    let bias = b.tensor(&format!("{}.bias", config.names.out));
    let y = b.graph.add_row(y, bias);
    b.tap(y, "tower_out");
    let norm = b.has("mm.a.soft_emb_norm.weight").then(|| b.weight("mm.a.soft_emb_norm"));
    let y = b.graph.rms_norm(y, norm, config.eps);
    let result = b.linear(y, "mm.a.input_projection");
    b.tap(result, "embeddings");
    b.graph.keep(result);
    EncoderGraph { graph: b.graph, result }
}

/// Two convolutions with stride 2 over frames and mel bins, and a projection of each remaining frame.
fn subsample(b: &mut Build<'_>, config: &AudioConfig, frames: usize) -> Value {
    let (mut x, mut bands) =
        (b.input(AudioInputs::FEATURES, Type::f32([frames, config.bins])), config.bins);
    for stage in 0..config.channels.len() {
        let weight = b.weight(&format!("a.conv1d.{stage}"));
        x = b.graph.convolve_stride2(x, weight, bands);
        let norm = b.weight(&format!("a.conv1d.{stage}.norm"));
        x = b.graph.layer_norm(x, norm, None, config.eps);
        x = b.graph.clamp(x, 0.0, f32::INFINITY);
        bands = bands.div_ceil(2);
    }
    b.linear(x, config.names.subsample)
}

/// A feed-forward half step; `which` is the suffix of its tensor names.
fn half_step(b: &mut ClampedBuild<'_>, h: Value, which: &str, eps: f32) -> Value {
    let prologue = b.after_norm(h, &format!("ffn_norm{which}"), eps);
    let (_, x) = b.fused_linear(&prologue, &format!("ffn_up{which}"));
    let (_, x) = b.fused_linear(&ClampedPrologue::Silu(x), &format!("ffn_down{which}"));
    let x = b.b.norm(x, &format!("ffn_post_norm{which}"));
    let x = b.b.graph.scale(x, HALF_STEP);
    b.b.graph.add(h, x)
}

fn attention(b: &mut ClampedBuild<'_>, h: Value, config: &AudioConfig, distances: Value) -> Value {
    let prologue = b.after_norm(h, config.names.attention_before, config.eps);
    let [q, k, v] = ["attn_q", "attn_k", "attn_v"].map(|name| b.fused_linear(&prologue, name).1);
    let ln_2 = std::f64::consts::LN_2;
    // The converter has applied softplus to the file's scales.
    let scale = b.b.weight("per_dim_scale");
    let by = (config.head() as f64).sqrt().recip() / ln_2;
    let q = b.b.graph.scale_row(q, scale, by as f32);
    let mut k = b.b.graph.scale(k, ((1.0 + std::f64::consts::E).ln() / ln_2) as f32);
    if b.b.has("per_dim_k_scale.weight") {
        let scale = b.b.weight("per_dim_k_scale");
        k = b.b.graph.scale_row(k, scale, 1.0);
    }
    let rows = b.b.linear(distances, config.names.distances);
    let o = b.b.graph.local_attention([q, k, v], rows, config.heads, SCORE_CAP);
    let o = b.linear(o, "attn_out");
    let weight = b.b.weight(config.names.attention_after);
    let branch = Branch {
        residual: h,
        branch: o,
        weight,
        post_norm: true,
        scale: None,
        lora_b: None,
        folded: 0,
    };
    b.b.graph.add_norm(&branch, config.eps)
}

fn light_convolution(b: &mut ClampedBuild<'_>, h: Value, eps: f32) -> Value {
    let prologue = b.after_norm(h, "conv_norm", eps);
    let (_, x) = b.fused_linear(&prologue, "conv_pw1");
    let x = b.b.graph.glu_halves(x);
    let weight = b.b.weight("conv_dw");
    let x = b.b.graph.convolve_causal(x, weight);
    let x = b.b.norm(x, "norm_conv");
    let (_, x) = b.fused_linear(&ClampedPrologue::Silu(x), "conv_pw2");
    b.b.graph.add(h, x)
}

/// Sinusoidal embeddings of distances 0 to `reach`: sines, then cosines.
pub fn distance_rows(reach: usize, width: usize) -> Vec<f32> {
    let half = width / 2;
    let step = if half > 1 { SINUSOID_BASE.ln() / (half - 1) as f64 } else { 0.0 };
    let frequency = |i: usize| (-(i as f64) * step).exp();
    let row = |distance: usize| {
        let angle = move |i: usize| distance as f64 * frequency(i);
        (0..half).map(move |i| angle(i).sin()).chain((0..half).map(move |i| angle(i).cos()))
    };
    (0..=reach).flat_map(row).map(|x| x as f32).collect()
}
