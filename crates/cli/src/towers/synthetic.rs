//! Synthetic towers: random weights in the shapes of released ones.

use anyhow::Result;
use clap::ValueEnum;
use rullama_gguf::{DType, Writer, quant::quantize};
use rullama_source::Bytes;

/// The model whose shapes are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Size {
    /// For tests
    Tiny,
    #[default]
    E2b,
    E4b,
}

/// Dimensions of the towers.
struct Shape {
    layers: u64,
    width: u64,
    heads: u64,
    audio_layers: u64,
    audio_width: u64,
    audio_heads: u64,
    made: u64,
    out: u64,
    positions: u64,
}

impl Size {
    fn shape(self) -> Shape {
        let full = Shape {
            layers: 16,
            width: 768,
            heads: 12,
            audio_layers: 12,
            audio_width: 1024,
            audio_heads: 8,
            made: 1536,
            out: 1536,
            positions: 10_240,
        };
        match self {
            Self::Tiny => Shape {
                layers: 1,
                width: 64,
                heads: 2,
                audio_layers: 1,
                audio_width: 64,
                audio_heads: 2,
                made: 64,
                out: 64,
                positions: 64,
            },
            Self::E2b => full,
            Self::E4b => Shape { out: 2560, ..full },
        }
    }
}

/// A projector file being built; all weights are slices of one random array.
struct File {
    writer: Writer,
    weights_f16: Bytes,
    weights_f32: Bytes,
    /// Number of clamped linear layers so far.
    clamped: u8,
}

impl File {
    fn new(longest: u64) -> Result<Self> {
        let mut state = 0x2545_F491_u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (f64::from(state) / f64::from(u32::MAX) - 0.5) as f32 * 0.1
        };
        let random: Vec<f32> = (0..longest).map(|_| next()).collect();
        let writer = Writer::new().kv("general.architecture", "clip").kv("general.type", "mmproj");
        let weights_f16 = quantize(DType::F16, &random)?.into();
        let weights_f32 = quantize(DType::F32, &random)?.into();
        Ok(Self { writer, weights_f16, weights_f32, clamped: 0 })
    }

    fn add(&mut self, name: &str, dims: &[u64], dtype: DType) {
        let (all, each) = match dtype {
            DType::F16 => (&self.weights_f16, 2),
            _ => (&self.weights_f32, 4),
        };
        // Fits: `longest` is the maximum over all tensors.
        let length = dims.iter().product::<u64>() as usize * each;
        let writer = std::mem::take(&mut self.writer);
        self.writer = writer.tensor(name, dims, dtype, all.slice(..length));
    }

    fn matrix(&mut self, name: &str, inner: u64, outer: u64) {
        self.add(&format!("{name}.weight"), &[inner, outer], DType::F16);
    }

    fn row(&mut self, name: &str, length: u64) {
        self.add(&format!("{name}.weight"), &[length], DType::F32);
    }

    /// A clamped linear layer, with other limits than the previous one, because real models differ, too.
    fn clamped(&mut self, name: &str, inner: u64, outer: u64) {
        self.matrix(name, inner, outer);
        self.clamped = (self.clamped + 1) % 8;
        let limit = 9.0 + f32::from(self.clamped);
        for (end, sign) in
            [("input_min", -1.0), ("input_max", 1.0), ("output_min", -1.0), ("output_max", 1.0)]
        {
            let writer = std::mem::take(&mut self.writer);
            let bytes = f32::to_le_bytes(sign * limit).to_vec();
            self.writer = writer.tensor(format!("{name}.{end}"), &[1], DType::F32, bytes);
        }
    }

    fn key(&mut self, name: &str, value: u64) {
        // Fits: these are small numbers.
        self.writer = std::mem::take(&mut self.writer).kv(format!("clip.{name}"), value as u32);
    }
}

/// The bytes of a projector file with both towers.
pub(super) fn file(size: Size) -> Result<Vec<u8>> {
    let shape = size.shape();
    let longest = [
        2 * shape.positions * shape.width,
        4 * shape.audio_width * shape.audio_width,
        4 * shape.width * shape.width,
        768 * shape.width,
        1024 * shape.audio_width,
        shape.made * shape.out,
        128 * 32 * 9,
    ];
    let mut file = File::new(longest.into_iter().max().unwrap_or(0))?;
    vision(&mut file, &shape);
    audio(&mut file, &shape);
    Ok(file.writer.finish()?)
}

fn vision(file: &mut File, shape: &Shape) {
    let (e, f) = (shape.width, 4 * shape.width);
    file.writer = std::mem::take(&mut file.writer).kv("clip.vision.projector_type", "gemma4v");
    for (key, value) in [
        ("block_count", shape.layers),
        ("embedding_length", e),
        ("feed_forward_length", f),
        ("attention.head_count", shape.heads),
        ("patch_size", 16),
    ] {
        file.key(&format!("vision.{key}"), value);
    }
    file.add("v.patch_embd.weight", &[16, 16, 3, e], DType::F16);
    file.add("v.position_embd.weight", &[e, shape.positions, 2], DType::F32);
    file.matrix("mm.input_projection", e, shape.out);
    for layer in 0..shape.layers {
        let at = |name: &str| format!("v.blk.{layer}.{name}");
        for name in ["ln1", "ln2", "attn_post_norm", "ffn_post_norm"] {
            file.row(&at(name), e);
        }
        for name in ["attn_q_norm", "attn_k_norm"] {
            file.row(&at(name), e / shape.heads);
        }
        for name in ["attn_q", "attn_k", "attn_v", "attn_out"] {
            file.clamped(&at(name), e, e);
        }
        file.clamped(&at("ffn_gate"), e, f);
        file.clamped(&at("ffn_up"), e, f);
        file.clamped(&at("ffn_down"), f, e);
    }
}

fn audio(file: &mut File, shape: &Shape) {
    let (a, f) = (shape.audio_width, 4 * shape.audio_width);
    file.writer = std::mem::take(&mut file.writer).kv("clip.audio.projector_type", "gemma4a");
    for (key, value) in [
        ("block_count", shape.audio_layers),
        ("embedding_length", a),
        ("feed_forward_length", f),
        ("attention.head_count", shape.audio_heads),
        ("num_mel_bins", 128),
    ] {
        file.key(&format!("audio.{key}"), value);
    }
    file.add("a.conv1d.0.weight", &[3, 3, 1, 128], DType::F32);
    file.add("a.conv1d.1.weight", &[3, 3, 128, 32], DType::F32);
    file.row("a.conv1d.0.norm", 128);
    file.row("a.conv1d.1.norm", 32);
    file.matrix("a.input_projection", 1024, a);
    file.matrix("a.pre_encode.out", a, shape.made);
    file.add("a.pre_encode.out.bias", &[shape.made], DType::F32);
    file.matrix("mm.a.input_projection", shape.made, shape.out);
    for layer in 0..shape.audio_layers {
        let at = |name: &str| format!("a.blk.{layer}.{name}");
        for name in [
            "ffn_norm",
            "ffn_post_norm",
            "ffn_norm_1",
            "ffn_post_norm_1",
            "attn_pre_norm",
            "attn_post_norm",
            "conv_norm",
            "norm_conv",
            "ln2",
        ] {
            file.row(&at(name), a);
        }
        file.row(&at("per_dim_scale"), a / shape.audio_heads);
        file.matrix(&at("attn_k_rel"), a, a);
        for name in ["attn_q", "attn_k", "attn_v", "attn_out", "conv_pw2"] {
            file.clamped(&at(name), a, a);
        }
        file.clamped(&at("conv_pw1"), a, 2 * a);
        file.add(&at("conv_dw.weight"), &[5, a], DType::F32);
        for half in ["", "_1"] {
            file.clamped(&at(&format!("ffn_up{half}")), a, f);
            file.clamped(&at(&format!("ffn_down{half}")), f, a);
        }
    }
}
