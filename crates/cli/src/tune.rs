//! `rullama tune`: measures the constants of kernel selection for a model on this machine's GPU, and stores them.

mod search;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args as Group;
use pollster::block_on;
use rullama::{MeasuredTuning, TuningKey, Tunings};
use rullama_engine::{
    executor::Device,
    gpu::{Gpu, Tuning},
};
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model,
    model::{CacheType, LoadOptions, ModelKind, describe_plans},
    session::{DeviceSampling, SessionOptions},
};
use serde_json::json;

use crate::{
    interrupt,
    load::{DeviceArgs, Loader, TUNING},
    locate::Stores,
    output::{note, print, print_json, progress},
    output_file, state,
};
use search::{Rates, Search};

/// Context of the measured sessions: kernels of longer ones divide the same weights.
const CONTEXT: usize = 512;
/// Time of a measured run; shorter ones would measure the clock of an idle GPU.
const RUN: Duration = Duration::from_millis(60);
/// Tokens of a run.
const TOKENS: std::ops::RangeInclusive<usize> = 4..=64;

#[derive(Debug, Group)]
pub(crate) struct TuneArgs {
    /// Name, path or URL
    model: String,
    /// Stop searching after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 45)]
    seconds: u64,
    /// Forget what was measured for this model on this GPU
    #[arg(long)]
    reset: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn tune(stores: &Stores, args: &TuneArgs) -> Result<()> {
    let (place, gguf) = stores.open(&args.model)?;
    if ModelKind::of(&gguf) != ModelKind::Decoder {
        bail!("only models that generate token by token have constants to tune");
    }
    let path = state::file(TUNING).context("there is no home folder to keep the result in")?;
    let stored = Tunings::read(&path).unwrap_or_else(|error| {
        note(&format!("{error}; starting a new one"));
        Tunings::default()
    });
    let mut loader = Loader::new(place, &args.device, Some(CONTEXT), CacheType::F16);
    loader.options.tuning = None;
    interrupt::watch();
    let Device::Gpu(gpu) = loader.open_device()? else {
        bail!("there is no GPU to tune for, and the CPU has nothing to tune");
    };
    let file = TuningFile { path, stored, key: TuningKey::new(&gpu, &gguf) };
    if args.reset {
        return file.reset(args.json);
    }
    let model = loader.load_on(Device::Gpu(gpu.clone()))?;
    let mut device = TunedModel { model: Some(model), gguf, gpu, tokens: 0 };
    device.calibrate()?;
    let deadline = Instant::now() + Duration::from_secs(args.seconds);
    let bar = progress(args.seconds, "measuring");
    bar.set_style(indicatif::ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} s")?);
    let found = Search::new(&mut device, &mut || {
        let left = deadline.saturating_duration_since(Instant::now());
        bar.set_position(args.seconds.saturating_sub(left.as_secs()));
        interrupt::check()?;
        Ok(!left.is_zero())
    })
    .run();
    bar.finish_and_clear();
    file.keep(&found?, args.json)
}

/// The file of measurements and the entry of this model and GPU.
struct TuningFile {
    path: PathBuf,
    stored: Tunings,
    key: TuningKey,
}

impl TuningFile {
    fn reset(mut self, json: bool) -> Result<()> {
        let removed = self.stored.remove(&self.key);
        if removed {
            self.write()?;
        }
        match (json, removed) {
            (true, _) => print_json(&json!({ "removed": removed })),
            (false, true) => print("Forgotten; the defaults are used again.\n"),
            (false, false) => print("Nothing was measured for this model on this GPU.\n"),
        }
    }

    /// Stores a tuning that is faster than the defaults; otherwise the defaults are used.
    fn keep(mut self, found: &search::Found, json: bool) -> Result<()> {
        let search::Found { tuning, before, after, tried } = *found;
        let measured = MeasuredTuning::new(self.key.clone(), tuning, (before, after));
        let faster = !measured.constants.is_empty();
        if faster {
            self.stored.insert(measured.clone());
            self.write()?;
        } else if self.stored.remove(&self.key) {
            self.write()?;
        }
        if json {
            return print_json(&json!({ "stored": faster, "tried": tried, "measured": measured }));
        }
        if !faster {
            return print(&format!(
                "The defaults are the fastest of {tried} variants: {before:.1} tokens/s. Nothing is stored.\n"
            ));
        }
        let constants: Vec<String> =
            measured.constants.iter().map(|(name, value)| format!("{name} {value}")).collect();
        print(&format!(
            "{before:.1} → {after:.1} tokens/s ({:+.1} %), the best of {tried} variants: {}.\nStored in {} and used from now on; `rullama tune --reset` forgets it.\n",
            (after / before - 1.0) * 100.0,
            constants.join(", "),
            self.path.display(),
        ))
    }

    fn write(&self) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        output_file::write(&self.path, &serde_json::to_vec_pretty(&self.stored)?)
    }
}

/// The model on the GPU, whose decode steps are timed with different constants.
struct TunedModel {
    /// `None` only while it is exchanged.
    model: Option<Model>,
    gguf: Gguf,
    gpu: Gpu,
    /// Tokens of a run.
    tokens: usize,
}

impl TunedModel {
    /// Chooses the length of a run.
    fn calibrate(&mut self) -> Result<()> {
        self.tokens = *TOKENS.start();
        let rate = self.rate(Tuning::default(), 2)?;
        self.tokens = ((rate * RUN.as_secs_f64()) as usize).clamp(*TOKENS.start(), *TOKENS.end());
        Ok(())
    }
}

impl Rates for TunedModel {
    fn plan(&self, tuning: Tuning) -> Result<String> {
        let facts = self.gpu.tuned(tuning).facts().clone();
        let options = LoadOptions { context: Some(CONTEXT), ..LoadOptions::default() };
        Ok(describe_plans(&self.gguf, &facts, &options)?)
    }

    fn rate(&mut self, tuning: Tuning, runs: usize) -> Result<f64> {
        let model = self.model.take().context("the model is in use")?;
        let model = model.with_tuning(tuning).map_err(|_| anyhow!("the model is in use"))?;
        let options = SessionOptions { context: Some(CONTEXT), ..SessionOptions::default() };
        let mut best = Duration::MAX;
        {
            let mut session = model.session(&options)?;
            // The first run compiles the kernels.
            for run in 0..=runs {
                session.set_tokens(&[1])?;
                block_on(session.synchronize())?;
                let start = Instant::now();
                for _ in 0..self.tokens {
                    block_on(session.next(DeviceSampling::Greedy))?;
                }
                if run > 0 {
                    best = best.min(start.elapsed());
                }
            }
        }
        self.model = Some(model);
        Ok(self.tokens as f64 / best.as_secs_f64())
    }
}
