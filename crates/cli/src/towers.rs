//! `rullama bench-towers`: the speed of encoding images and audio on this machine.

mod synthetic;

use std::{
    path::PathBuf,
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use clap::Args as Group;
use pollster::block_on;
use rullama::OpenOptions;
use rullama_engine::{executor::Device, gpu::profile::Table, graph::Cost};
use rullama_gguf::Gguf;
use rullama_models::gemma4::{audio::AudioConfig, vision::VisionConfig};
use rullama_runtime::{
    RuntimeError,
    audio::{Audio, RATE, features},
    image::{Budget, Image},
    media::{AudioEncoder, REACH},
    media::{ImageSize, VisionEncoder},
};
use rullama_source::{ByteSource, FileSource, MemorySource};
use serde_json::{Value, json};

use crate::{
    load::{DeviceArg, PipelineArgs, open_device},
    ops::at_level,
    output::{bytes, print, print_json, table},
    output_file,
};
use synthetic::Size;

/// A photograph of twelve megapixels.
const PHOTO: (u32, u32) = (4000, 3000);
/// Time until an idle device reaches its full clock rate.
const WARM_UP: Duration = Duration::from_millis(300);
/// Side of a patch in pixels, the same for all known towers.
const PATCH: u32 = 16;

#[derive(Debug, Group)]
pub(crate) struct TowersArgs {
    /// Projector file with the encoders; synthetic ones if not given
    mmproj: Option<PathBuf>,
    /// Size of the synthetic encoders
    #[arg(long, value_enum, default_value_t)]
    size: Size,
    /// Write the synthetic encoders to a file and exit
    #[arg(long, value_name = "FILE", conflicts_with = "mmproj")]
    write: Option<PathBuf>,
    /// Maximum tokens of the image
    #[arg(long, value_name = "N", default_value_t = 280)]
    image_budget: u32,
    /// Length of the audio in seconds
    #[arg(long, value_name = "S", default_value_t = 30)]
    seconds: u32,
    /// Measured repetitions, after one cold run and some warm-up runs
    #[arg(short = 'r', long, value_name = "N", default_value_t = 10)]
    repetitions: usize,
    /// Also print the time of each kernel, if the GPU has timestamps
    #[arg(long)]
    profile: bool,
    /// Device to run on
    #[arg(long, value_enum, default_value_t)]
    device: DeviceArg,
    #[command(flatten)]
    pipelines: PipelineArgs,
    /// Emulate a lesser GPU: "no matrix units", "no f16" or floor
    #[arg(long, value_name = "NAME")]
    feature_level: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A measurement: one cold run and repeated warm runs.
struct Measured {
    what: String,
    cold: Duration,
    warm: Vec<Duration>,
    /// Cost of the encoder's dispatches.
    cost: Option<Cost>,
    profile: Option<Table>,
}

pub(crate) fn towers(args: &TowersArgs) -> Result<()> {
    if let Some(path) = &args.write {
        output_file::write(path, &synthetic::file(args.size)?)?;
        return print(&format!("Wrote {}.\n", path.display()));
    }
    if args.repetitions == 0 || args.seconds == 0 {
        bail!("nothing to measure: -r and --seconds must be greater than 0");
    }
    let source: Rc<dyn ByteSource> = match &args.mmproj {
        Some(path) => Rc::new(FileSource::open(path)?),
        None => Rc::new(MemorySource::new("synthetic", synthetic::file(args.size)?)),
    };
    let gguf = Rc::new(block_on(Gguf::open(source))?);
    let options = OpenOptions {
        device: args.device.into(),
        pipeline_cache: args.pipelines.folder(),
        ..OpenOptions::default()
    };
    let device = match (open_device(&options)?, &args.feature_level) {
        (Device::Gpu(gpu), Some(wanted)) => Device::Gpu(at_level(&gpu, wanted)?.1),
        (Device::Cpu, Some(_)) => bail!("--feature-level needs a GPU; see --device"),
        (device, None) => device,
    };
    let mut measured = Vec::new();
    let mut gpu_bytes = 0;
    if let Some(config) = VisionConfig::of_file(&gguf)?
        && let Some(encoder) =
            block_on(VisionEncoder::load(gguf.clone(), device.clone(), config.out))?
    {
        measured.extend(bench_vision(args, &encoder)?);
        gpu_bytes += encoder.gpu_bytes();
    }
    if let Some(config) = AudioConfig::of_file(&gguf)?
        && let Some(encoder) =
            block_on(AudioEncoder::load(gguf.clone(), device.clone(), config.out))?
    {
        measured.extend(bench_audio(args, &encoder)?);
        gpu_bytes += encoder.gpu_bytes();
    }
    if args.json {
        return print_json(&json!({
            "adapter": device.name(),
            "feature_level": args.feature_level,
            "gpu_bytes": gpu_bytes,
            "tests": measured.iter().map(Measured::json).collect::<Vec<_>>(),
        }));
    }
    print(&text(device.name(), gpu_bytes, &measured))
}

/// Times to encode an image of each size that the encoder takes, with its number of soft tokens.
pub(crate) fn by_budget(
    encoder: &VisionEncoder,
    repetitions: usize,
) -> Result<Vec<(u32, Vec<Duration>)>> {
    let photo = photo()?;
    let mut all = Vec::new();
    for budget in [Budget::Tiny, Budget::Small, Budget::Medium, Budget::Large, Budget::Huge] {
        let image = photo.fill(budget);
        let encode = || match block_on(encoder.encode(&image, ImageSize::Native)) {
            Ok(_) => Ok(true),
            // Larger ones do not fit, either.
            Err(RuntimeError::ImageTooLong { .. }) => Ok(false),
            Err(error) => Err(error),
        };
        if !encode()? {
            break;
        }
        let measured = measure(repetitions, || Ok(encode().map(drop)?))?;
        all.push((image.size().tokens(), measured.warm));
    }
    Ok(all)
}

/// An image of twelve megapixels.
fn photo() -> Result<Image> {
    let (width, height) = PHOTO;
    let pixels = (0..width * height).flat_map(|i| [i, i / width, i / 7].map(|x| x as u8));
    Ok(Image::from_rgb(width, height, pixels.collect()).map_err(RuntimeError::from)?)
}

/// Measures an image: preprocessing (resize, patches), then the encoder.
fn bench_vision(args: &TowersArgs, encoder: &VisionEncoder) -> Result<[Measured; 2]> {
    let budget = Budget::try_from(args.image_budget).map_err(RuntimeError::from)?;
    let photo = photo()?;
    let small = photo.fill(budget);
    let preprocessing = measure(args.repetitions, || {
        let patches = photo.fill(budget).patches(PATCH).map_err(RuntimeError::from)?;
        std::hint::black_box(patches);
        Ok(())
    })?;
    let tokens = small.size().tokens();
    let mut encoding = measure(args.repetitions, || {
        block_on(encoder.encode(&small, ImageSize::Native))?;
        Ok(())
    })?;
    let (cost, profile) = block_on(encoder.profile(&small, ImageSize::Native))?;
    (encoding.cost, encoding.profile) = (Some(cost), profile.filter(|_| args.profile));
    encoding.what = format!("image of {tokens} tokens, encoder");
    Ok([Measured { what: "12-megapixel photo, preprocessing".into(), ..preprocessing }, encoding])
}

/// Measures an audio clip: its features, then features and encoder.
fn bench_audio(args: &TowersArgs, encoder: &AudioEncoder) -> Result<[Measured; 2]> {
    let sample = |i: u32| ((u64::from(i) * u64::from(i) % 7919) as f64 / 7919.0 - 0.5) as f32;
    let samples: Vec<f32> = (0..args.seconds * RATE).map(sample).collect();
    let audio = Audio::new(&samples, 1, RATE).map_err(RuntimeError::from)?;
    let features = measure(args.repetitions, || {
        for piece in audio.pieces().map_err(RuntimeError::from)? {
            std::hint::black_box(features(piece));
        }
        Ok(())
    })?;
    let mut encoding = measure(args.repetitions, || {
        block_on(encoder.encode(&audio, REACH))?;
        Ok(())
    })?;
    let (cost, profile) = block_on(encoder.profile(&audio))?;
    (encoding.cost, encoding.profile) = (Some(cost), profile.filter(|_| args.profile));
    encoding.what = format!("{} s of audio, features and encoder", args.seconds);
    Ok([Measured { what: format!("{} s of audio, features", args.seconds), ..features }, encoding])
}

fn measure(repetitions: usize, mut work: impl FnMut() -> Result<()>) -> Result<Measured> {
    let mut time = || {
        let start = Instant::now();
        work().map(|()| start.elapsed())
    };
    let cold = time()?;
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        time()?;
    }
    let warm = (0..repetitions).map(|_| time()).collect::<Result<_>>()?;
    Ok(Measured { what: String::new(), cold, warm, cost: None, profile: None })
}

impl Measured {
    /// Mean and best, in milliseconds.
    fn milliseconds(&self) -> (f64, f64) {
        let each = self.warm.iter().map(|time| time.as_secs_f64() * 1e3);
        let mean = each.clone().sum::<f64>() / self.warm.len() as f64;
        (mean, each.fold(f64::INFINITY, f64::min))
    }

    fn json(&self) -> Value {
        let (mean, best) = self.milliseconds();
        json!({
            "test": self.what,
            "cold_ms": self.cold.as_secs_f64() * 1e3,
            "mean_ms": mean,
            "best_ms": best,
            "dispatches": self.cost.as_ref().map(|cost| cost.dispatches),
            "operations": self.cost.as_ref().map(|cost| cost.operations),
        })
    }
}

fn text(device: &str, gpu_bytes: u64, measured: &[Measured]) -> String {
    let mut rows = vec![["TEST", "COLD MS", "MEAN MS", "BEST MS", ""].map(String::from).to_vec()];
    for one in measured {
        let (mean, best) = one.milliseconds();
        let of = one.cost.as_ref().map(|cost| {
            format!("{} dispatches, {:.1} GFLOP", cost.dispatches, cost.operations as f64 / 1e9)
        });
        rows.push(vec![
            one.what.clone(),
            format!("{:.2}", one.cold.as_secs_f64() * 1e3),
            format!("{mean:.2}"),
            format!("{best:.2}"),
            of.unwrap_or_default(),
        ]);
    }
    let mut text = format!("{device}, {} on the GPU\n\n{}", bytes(gpu_bytes), table(&rows));
    for one in measured {
        if let Some(profile) = &one.profile {
            text.push_str(&format!("\n{}\n{profile}", one.what));
        }
    }
    text
}
