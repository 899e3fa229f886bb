//! Loading a model: device and memory flags, and a progress bar.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::{Args as Group, ValueEnum};
use pollster::block_on;
use rullama::{
    CacheType, Device, DeviceChoice, Location, OnProgress, OpenOptions, Progress, TablePlace,
};
use rullama_gguf::Gguf;
use rullama_runtime::Model;

use crate::{
    interrupt, locate,
    output::{note, progress},
    quiet::quietly,
    state,
};

/// The file of measured tunings, in the program's state.
pub(crate) const TUNING: &str = "tuning.json";
/// The folder of compiled pipelines, in the program's cache.
const PIPELINES: &str = "pipelines";

/// Device and memory flags.
#[derive(Debug, Clone, Group)]
#[command(next_help_heading = "Device")]
pub(crate) struct DeviceArgs {
    /// Device to run on; auto picks a GPU, or the CPU if there is none or only a software GPU
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceArg,
    /// KV cache type
    #[arg(long, value_enum, value_name = "TYPE")]
    cache: Option<CacheArg>,
    /// Where to keep the per-layer embedding table (E2B, E4B); auto is the GPU if it has its own memory
    #[arg(long, value_enum, default_value_t)]
    table: TableArg,
    /// GPU memory limit, such as 1.5G or 800MiB; all the device offers if not given
    #[arg(long, value_name = "BYTES", value_parser = size)]
    gpu_memory: Option<u64>,
    /// Run the experts of the last LAYERS layers on the CPU, from the mapped file; if not given, as many as --gpu-memory requires
    #[arg(long, value_name = "LAYERS")]
    host_experts: Option<usize>,
    /// Do not use what `rullama tune` measured
    #[arg(long)]
    no_tuning: bool,
    #[command(flatten)]
    pipelines: PipelineArgs,
}

/// Whether compiled pipelines are kept.
#[derive(Debug, Clone, Group)]
pub(crate) struct PipelineArgs {
    /// Do not keep compiled GPU kernels for the next start, and use none of an earlier one
    #[arg(long)]
    no_pipeline_cache: bool,
}

impl PipelineArgs {
    /// Where they are kept.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        if self.no_pipeline_cache { None } else { state::cache(PIPELINES) }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceArg {
    #[default]
    Auto,
    Gpu,
    Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CacheArg {
    /// Exact, twice the size of f16
    F32,
    F16,
    /// Half the size of f16
    Q8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum TableArg {
    #[default]
    Auto,
    /// In the mapped file; rows are read as tokens need them
    Host,
    Gpu,
}

impl DeviceArgs {
    /// Whether no device flag was given.
    pub(crate) fn is_default(&self) -> bool {
        self.device == DeviceArg::Auto
            && self.cache.is_none()
            && self.table == TableArg::Auto
            && self.gpu_memory.is_none()
            && self.host_experts.is_none()
            && !self.no_tuning
            && !self.pipelines.no_pipeline_cache
    }

    /// The device of these flags.
    pub(crate) fn open(&self) -> Result<Device> {
        open_device(&self.options(None, CacheType::default()))
    }

    /// Options to open a model with these flags; `cache` is the default cache type.
    pub(crate) fn options(&self, context: Option<usize>, cache: CacheType) -> OpenOptions {
        OpenOptions {
            device: self.device.into(),
            context,
            cache: match self.cache {
                None => cache,
                Some(CacheArg::F32) => CacheType::F32,
                Some(CacheArg::F16) => CacheType::F16,
                Some(CacheArg::Q8) => CacheType::Q8,
            },
            table: match self.table {
                TableArg::Auto => TablePlace::Auto,
                TableArg::Host => TablePlace::Host,
                TableArg::Gpu => TablePlace::Gpu,
            },
            gpu_memory: self.gpu_memory,
            host_experts: self.host_experts,
            tuning: if self.no_tuning { None } else { state::file(TUNING) },
            pipeline_cache: self.pipelines.folder(),
            ..OpenOptions::default()
        }
    }
}

impl From<DeviceArg> for DeviceChoice {
    fn from(arg: DeviceArg) -> Self {
        match arg {
            DeviceArg::Auto => Self::Auto,
            DeviceArg::Gpu => Self::Gpu,
            DeviceArg::Cpu => Self::Cpu,
        }
    }
}

/// Loads a model, also again after its device was lost.
pub(crate) struct Loader {
    pub(crate) location: Location,
    pub(crate) options: OpenOptions,
}

impl Loader {
    /// A loader of this model; `cache` is the default cache type.
    pub(crate) fn new(
        location: Location,
        args: &DeviceArgs,
        context: Option<usize>,
        cache: CacheType,
    ) -> Self {
        Self { location, options: args.options(context, cache) }
    }

    /// Uses exact kernels, for numerical comparisons.
    pub(crate) fn exact(mut self) -> Self {
        self.options.exact = true;
        self
    }

    /// Opens the device and loads the model; returns the time it took, too.
    pub(crate) fn load(&self) -> Result<(Model, Duration)> {
        let start = Instant::now();
        // A broken file needs no device.
        let gguf = locate::open(&self.location)?;
        let model = self.load_file(gguf, self.open_device()?)?;
        Ok((model, start.elapsed()))
    }

    /// Opens the device.
    pub(crate) fn open_device(&self) -> Result<Device> {
        open_device(&self.options)
    }

    /// Loads the model onto a device.
    pub(crate) fn load_on(&self, device: Device) -> Result<Model> {
        self.load_file(locate::open(&self.location)?, device)
    }

    fn load_file(&self, gguf: Gguf, device: Device) -> Result<Model> {
        let context = self.options.context;
        Ok(showing(|each| block_on(self.options.load(gguf, device, context, each)))?)
    }

    /// Opens the device and loads the model with its prompts and parameters from the store.
    pub(crate) fn open(&self, name: &str) -> Result<rullama::Model> {
        let device = self.open_device()?;
        let open = |each: OnProgress<'_>| {
            let location = self.location.clone();
            block_on(rullama::Model::open_at(name, location, device, &self.options, each))
        };
        Ok(showing(open)?)
    }
}

/// Runs `load` with a progress bar; Ctrl-C cancels it.
pub(crate) fn showing<T>(load: impl FnOnce(&mut dyn FnMut(Progress) -> ControlFlow<()>) -> T) -> T {
    let bar = progress(0, "loading");
    let mut each = |progress: Progress| {
        // Setting the length redraws the bar.
        if bar.length() != Some(progress.total) {
            bar.set_length(progress.total);
        }
        bar.set_position(progress.done);
        interrupt::flow()
    };
    let loaded = load(&mut each);
    bar.finish_and_clear();
    loaded
}

/// Opens the device of these options.
pub(crate) fn open_device(options: &OpenOptions) -> Result<Device> {
    let opened = quietly(|| options.open_device())?;
    if opened.no_gpu {
        note("no GPU found, using the CPU (slow)");
    }
    Ok(opened.device)
}

/// Parses a number of bytes: 1.5G, 800M, 2GiB, 123456.
pub(crate) fn size(text: &str) -> Result<u64, &'static str> {
    const WRONG: &str = "give a number of bytes, such as 1500000000, 1.5G or 800MiB";
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.trim().parse().map_err(|_| WRONG)?;
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(WRONG),
    };
    let bytes = number * scale as f64;
    if bytes.is_finite() && (0.0..1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(WRONG) }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("123", 123),
            ("1.5G", 1_500_000_000),
            ("1.5 GB", 1_500_000_000),
            ("800MiB", 838_860_800),
            ("2k", 2000),
            ("0", 0),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "1.5X", "-1", "1e99T", "nan", "inf"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
