//! Vision and audio encoders without a tower (12B) on a small random model: the graph on every device against a reference in this test.

use std::rc::Rc;

use pollster::block_on;
use rullama_gguf::{DType, Gguf, Writer, quant::quantize};
use rullama_runtime::{
    RuntimeError, SoftTokens,
    audio::Audio,
    image::Image,
    media::{AudioEncoder, REACH},
    media::{ImageSize, VisionEncoder},
};
use rullama_source::MemorySource;

use super::golden::devices;

/// Cell side in pixels, values per cell, hidden size, soft token width, samples per frame, positions.
const CELL: usize = 48;
const PIXELS: usize = CELL * CELL * 3;
const WIDTH: usize = 64;
const OUT: usize = 32;
const FRAME: usize = 640;
const POSITIONS: usize = 12;
const CLOSE: f64 = 1e-4;

/// Reproducible pseudo-random weights.
fn random(seed: u64, count: usize, size: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 * 2.0 - 1.0
    };
    (0..count).map(|_| next() * size).collect()
}

/// The tensors of the model, with their dimensions, innermost first.
struct Weights {
    tensors: Vec<(&'static str, Vec<u64>, Vec<f32>)>,
}

impl Weights {
    fn new() -> Self {
        let shapes: [(&'static str, &[usize]); 11] = [
            ("v.patch_norm.1.weight", &[PIXELS]),
            ("v.patch_norm.1.bias", &[PIXELS]),
            ("v.patch_embd.weight", &[PIXELS, WIDTH]),
            ("v.patch_embd.bias", &[WIDTH]),
            ("v.patch_norm.2.weight", &[WIDTH]),
            ("v.patch_norm.2.bias", &[WIDTH]),
            ("v.position_embd.weight", &[WIDTH, POSITIONS, 2]),
            ("v.patch_norm.3.weight", &[WIDTH]),
            ("v.patch_norm.3.bias", &[WIDTH]),
            ("mm.input_projection.weight", &[WIDTH, OUT]),
            ("mm.a.input_projection.weight", &[FRAME, OUT]),
        ];
        let make = |(index, (name, dims)): (usize, (&'static str, &[usize]))| {
            let count = dims.iter().product();
            let size = if dims.len() == 1 { 1.0 } else { 1.0 / (dims[0] as f32).sqrt() };
            let dims = dims.iter().map(|dim| *dim as u64).collect();
            (name, dims, random(index as u64 + 7, count, size))
        };
        Self { tensors: shapes.into_iter().enumerate().map(make).collect() }
    }

    fn get(&self, name: &str) -> Vec<f64> {
        let (_, _, values) = self.tensors.iter().find(|(known, ..)| *known == name).expect(name);
        values.iter().map(|x| f64::from(*x)).collect()
    }

    fn file(&self) -> Writer {
        let keys = Writer::new()
            .kv("general.architecture", "clip")
            .kv("general.type", "mmproj")
            .kv("clip.has_vision_encoder", true)
            .kv("clip.has_audio_encoder", true)
            .kv("clip.vision.projector_type", "gemma4uv")
            .kv("clip.audio.projector_type", "gemma4ua")
            .kv("clip.vision.patch_size", 16u32)
            .kv("clip.vision.embedding_length", WIDTH as u32)
            .kv("clip.vision.projection_dim", OUT as u32);
        self.tensors.iter().fold(keys, |file, (name, dims, values)| {
            let bytes = quantize(DType::F32, values).expect("numbers");
            file.tensor(*name, dims, DType::F32, bytes)
        })
    }

    fn open(&self) -> Rc<Gguf> {
        let source = MemorySource::new("direct", self.file().finish().expect("a file"));
        Rc::new(block_on(Gguf::open(Rc::new(source))).expect("the file opens"))
    }
}

/// `(x − mean) / √(variance + eps) · weight + bias`.
fn layer_norm(x: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64;
    let scale = (variance + 1e-5).sqrt().recip();
    (0..x.len()).map(|i| (x[i] - mean) * scale * weight[i] + bias[i]).collect()
}

/// `W · x / √(mean(x²) + eps)`.
fn projected(x: &[f64], weight: &[f64]) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let scale = (mean + 1e-6).sqrt().recip();
    let x: Vec<f64> = x.iter().map(|x| x * scale).collect();
    matmul(weight, &x)
}

fn matmul(weight: &[f64], x: &[f64]) -> Vec<f64> {
    let dot = |row: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum();
    weight.chunks_exact(x.len()).map(dot).collect()
}

/// One cell of an image, channels outermost, as in the file.
fn cell(image: &Image, column: usize, row: usize) -> Vec<f64> {
    let line = image.size().width as usize * 3;
    let mut values = Vec::new();
    for channel in 0..3 {
        for y in 0..CELL {
            for x in 0..CELL {
                let at = (row * CELL + y) * line + (column * CELL + x) * 3 + channel;
                values.push(f64::from(image.rgb()[at]) / 255.0);
            }
        }
    }
    values
}

fn vision_reference(weights: &Weights, image: &Image) -> Vec<f64> {
    let get = |name: &str| weights.get(name);
    let norm = |x: &[f64], number: usize| {
        let part = |end: &str| get(&format!("v.patch_norm.{number}.{end}"));
        layer_norm(x, &part("weight"), &part("bias"))
    };
    let positions = get("v.position_embd.weight");
    let (columns, rows) = (image.size().width as usize / CELL, image.size().height as usize / CELL);
    let mut all = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let x = matmul(&get("v.patch_embd.weight"), &norm(&cell(image, column, row), 1));
            let bias = get("v.patch_embd.bias");
            let x: Vec<f64> = x.iter().zip(bias).map(|(x, bias)| x + bias).collect();
            let x: Vec<f64> = norm(&x, 2)
                .into_iter()
                .enumerate()
                .map(|(i, x)| {
                    x + positions[column * WIDTH + i] + positions[(POSITIONS + row) * WIDTH + i]
                })
                .collect();
            all.extend(projected(&norm(&x, 3), &get("mm.input_projection.weight")));
        }
    }
    all
}

fn audio_reference(weights: &Weights, samples: &[f32]) -> Vec<f64> {
    let weight = weights.get("mm.a.input_projection.weight");
    let frame = |frame: &[f32]| {
        let mut frame: Vec<f64> = frame.iter().map(|x| f64::from(*x)).collect();
        frame.resize(FRAME, 0.0);
        projected(&frame, &weight)
    };
    samples.chunks(FRAME).flat_map(frame).collect()
}

fn check(made: &SoftTokens, wanted: &[f64], what: &str) {
    assert_eq!((made.count * OUT, made.values.len()), (wanted.len(), wanted.len()), "{what}");
    let worst = made.values.iter().zip(wanted).map(|(a, b)| (f64::from(*a) - b).abs());
    let worst = worst.fold(0.0, f64::max);
    assert!(worst < CLOSE, "{what}: {worst}");
}

#[test]
fn images_without_a_tower() {
    let weights = Weights::new();
    let (width, height) = (3 * CELL as u32, 2 * CELL as u32);
    let pixels = random(3, (width * height * 3) as usize, 127.5);
    let pixels = pixels.iter().map(|x| (x + 127.5) as u8).collect();
    let image = Image::from_rgb(width, height, pixels).expect("an image");
    let wanted = vision_reference(&weights, &image);
    for device in devices() {
        let encoder =
            block_on(VisionEncoder::load(weights.open(), device.clone(), OUT)).expect("it loads");
        let encoder = encoder.expect("a vision encoder");
        let made = block_on(encoder.encode(&image, ImageSize::Native)).expect("it runs");
        check(&made, &wanted, device.name());
        let wide = Image::from_rgb(13 * CELL as u32, 48, vec![9; 13 * CELL * 48 * 3]);
        let wide = block_on(encoder.encode(&wide.expect("an image"), ImageSize::Native));
        assert!(matches!(wide, Err(RuntimeError::ImageTooLong { patches: 13, most: 12 })));
    }
}

#[test]
fn audio_without_a_tower() {
    let weights = Weights::new();
    for device in devices() {
        let encoder =
            block_on(AudioEncoder::load(weights.open(), device.clone(), OUT)).expect("it loads");
        let encoder = encoder.expect("an audio encoder");
        for length in [1, 640, 641, 3000] {
            let samples = random(5, length, 0.5);
            let audio = Audio::new(&samples, 1, 16_000).expect("an audio clip");
            let made = block_on(encoder.encode(&audio, REACH)).expect("it runs");
            check(
                &made,
                &audio_reference(&weights, &samples),
                &format!("{length} on {}", device.name()),
            );
        }
        let nothing = Audio::new(&[], 1, 16_000).expect("an audio clip");
        assert!(block_on(encoder.encode(&nothing, REACH)).is_err());
    }
}

#[test]
fn inconsistent_shapes_are_refused() {
    let mut weights = Weights::new();
    let norm = weights.tensors.iter_mut().find(|(name, ..)| *name == "v.patch_norm.1.bias");
    let (_, dims, values) = norm.expect("it is there");
    (dims[0], *values) = (7, vec![0.0; 7]);
    let refused =
        block_on(VisionEncoder::load(weights.open(), rullama_engine::executor::Device::Cpu, OUT));
    assert!(matches!(refused, Err(RuntimeError::Model(_))), "{refused:?}");
}
