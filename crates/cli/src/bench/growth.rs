//! `rullama bench --growth`: how speed and memory scale, as tables and plots, each with the model it should follow.

mod fit;
mod series;

use std::{num::NonZeroUsize, path::Path, time::Duration};

use anyhow::{Context, Result};
use pollster::block_on;
use rullama::AdapterSet;
use rullama_gguf::Gguf;
use rullama_models::gemma4::vision::VisionConfig;
use rullama_runtime::{
    media::VisionEncoder,
    model::{LoadOptions, MemoryUse, TablePlace},
    scheduler::SchedulerOptions,
    session::SessionOptions,
};
use serde_json::{Value, json};

use super::{
    measure::{Bench, Measured, Test},
    parallel, random,
};
use crate::{
    adapters,
    load::Loader,
    output::{bytes, note, table},
    output_file,
    plot::{Axes, Curve, escaped, svg},
    towers,
};
use series::{ADAPTERS, DECODE, IMAGES, Kind, PREFILL, STREAMS, Series};

/// Tokens generated at each depth.
const DECODED: usize = 32;
/// Largest depth and longest prompt.
const DEEPEST: usize = 131_072;
const LONGEST: usize = 32_768;
/// Contexts for which memory is estimated.
const CONTEXTS: [usize; 6] = [4096, 8192, 16_384, 32_768, 65_536, 131_072];
/// Numbers of adapters, and their rank.
const ADAPTER_COUNTS: [usize; 5] = [0, 1, 2, 4, 8];
const RANK: usize = 16;
/// Numbers of streams, each with a prompt of 32 and a completion of 64 tokens.
const STREAM_COUNTS: [usize; 6] = [1, 2, 4, 8, 16, 32];
const LENGTHS: parallel::Lengths =
    parallel::Lengths { prompt: 32, generate: 64, long_prompt: None };

/// The measurements.
pub(super) struct Growth {
    series: Vec<Series>,
    /// By context.
    memory: Vec<(usize, MemoryUse)>,
}

/// What is measured.
pub(super) struct Inputs<'a> {
    pub(super) gguf: &'a Gguf,
    pub(super) loader: &'a Loader,
    /// The file with the image encoder, if images are to be measured.
    pub(super) mmproj: Option<&'a Path>,
    pub(super) repetitions: usize,
}

/// The context that the tests need, at most the trained one.
pub(super) fn context(trained: usize) -> usize {
    trained.min(DEEPEST + DECODED + 1)
}

/// Measures decode by depth, adapters and streams, prefill by length, and images by size; memory is estimated from the file.
pub(super) fn measure(bench: &mut Bench, inputs: &Inputs<'_>) -> Result<Growth> {
    let max = bench.max_tokens();
    let depths = [0].into_iter().chain((9..).map(|power| 1 << power));
    let depths = depths.take_while(|depth| depth + DECODED < max);
    // The last one leaves room for the generated tokens in a context of the trained length.
    let depths = depths.take_while(|depth| *depth < DEEPEST).chain([DEEPEST.min(max - DECODED)]);
    let lengths = (5..).map(|power| 1 << power);
    let lengths = lengths.take_while(|length| *length <= LONGEST && *length < max);
    let decode = depths.map(|depth| Test { prefill: false, tokens: DECODED, depth });
    let prefill = lengths.map(|tokens| Test { prefill: true, tokens, depth: 0 });
    let mut run = |kind: Kind, of: fn(&Test) -> usize, tests: Vec<Test>| -> Result<Series> {
        let measured =
            |test| bench.test(test, inputs.repetitions).map(|measured| point(of, &measured));
        Ok(Series::new(kind, tests.into_iter().map(measured).collect::<Result<_>>()?))
    };
    let mut series = vec![
        run(DECODE, |test| test.depth, decode.collect())?,
        run(PREFILL, |test| test.tokens, prefill.collect())?,
        by_adapters(bench, inputs)?,
    ];
    match bench.session.model().tokenizer() {
        Ok(_) => series.push(by_streams(bench, inputs)?),
        // The scheduler turns tokens into text.
        Err(error) => note(&format!("streams are not measured: {error}")),
    }
    if let Some(mmproj) = inputs.mmproj {
        series.push(by_image_tokens(bench, inputs, mmproj)?);
    }
    Ok(Growth { series, memory: memory(bench, inputs.gguf)? })
}

fn point(of: fn(&Test) -> usize, measured: &Measured) -> (usize, f64, f64) {
    let (mean, deviation) = measured.speed();
    (of(&measured.test), mean, deviation)
}

fn by_adapters(bench: &Bench, inputs: &Inputs<'_>) -> Result<Series> {
    let model = bench.session.model();
    let test = Test { prefill: false, tokens: DECODED, depth: 0 };
    let context = test.context();
    let options = SessionOptions {
        context: Some(context),
        cache: inputs.loader.options.cache,
        ..SessionOptions::default()
    };
    let of = |count: usize| {
        let set = (0..count).map(|number| (random::adapter(model, RANK, number), 1.0));
        let session =
            adapters::session(&AdapterSet(set.collect()), model, &options, inputs.loader)?;
        let measured = Bench::new(session, context).test(test, inputs.repetitions)?;
        let (mean, deviation) = measured.speed();
        Ok((count, mean, deviation))
    };
    Ok(Series::new(ADAPTERS, ADAPTER_COUNTS.into_iter().map(of).collect::<Result<_>>()?))
}

fn by_streams(bench: &Bench, inputs: &Inputs<'_>) -> Result<Series> {
    let options =
        SchedulerOptions { cache: inputs.loader.options.cache, ..SchedulerOptions::default() };
    let load = parallel::Load { streams: &STREAM_COUNTS, lengths: LENGTHS, adapters: &[] };
    let measured = parallel::measure(bench.session.model(), &options, &load, false)?;
    let rates = STREAM_COUNTS.into_iter().zip(&measured);
    Ok(Series::new(STREAMS, rates.map(|(n, measured)| (n, measured.decode_rate(), 0.0)).collect()))
}

fn by_image_tokens(bench: &Bench, inputs: &Inputs<'_>, mmproj: &Path) -> Result<Series> {
    let gguf = std::rc::Rc::new(crate::locate::open(&rullama::Location::Path(mmproj.into()))?);
    let device = bench.session.model().device().clone();
    let name = || mmproj.display().to_string();
    let config = VisionConfig::of_file(&gguf)?.with_context(name)?;
    let encoder = block_on(VisionEncoder::load(gguf, device, config.out))?.with_context(name)?;
    let repetitions = NonZeroUsize::new(inputs.repetitions).map_or(1, NonZeroUsize::get);
    let times = towers::by_budget(&encoder, repetitions)?;
    let rate = |(tokens, times): (u32, Vec<Duration>)| {
        let mean = times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
        (tokens as usize, 1.0 / mean, 0.0)
    };
    Ok(Series::new(IMAGES, times.into_iter().map(rate).collect()))
}

fn memory(bench: &Bench, gguf: &Gguf) -> Result<Vec<(usize, MemoryUse)>> {
    let trained = bench.session.model().config().context;
    let of = |context: usize| -> Result<(usize, MemoryUse)> {
        let options = LoadOptions {
            context: Some(context),
            table: TablePlace::Gpu,
            ..LoadOptions::default()
        };
        Ok((context, MemoryUse::of_file(gguf, &options)?))
    };
    CONTEXTS.into_iter().filter(|context| *context <= trained).map(of).collect()
}

impl Growth {
    /// A table for each series, and one for memory.
    pub(super) fn text(&self) -> String {
        let mut rows = vec![["CONTEXT", "GPU MEMORY", "CACHES", "WORK"].map(String::from).to_vec()];
        rows.extend(self.memory.iter().map(|(context, memory)| {
            let gpu = bytes(memory.gpu(memory.table > 0));
            vec![context.to_string(), gpu, bytes(memory.caches), bytes(memory.work)]
        }));
        let series: String = self.series.iter().map(Series::text).collect();
        format!("{series}\nmemory by context\n{}", table(&rows))
    }

    pub(super) fn json(&self) -> Value {
        let memory = |(context, memory): &(usize, MemoryUse)| {
            let gpu = memory.gpu(memory.table > 0);
            json!({ "context": context, "gpu": gpu, "caches": memory.caches, "work": memory.work })
        };
        let mut all = json!({ "memory": self.memory.iter().map(memory).collect::<Vec<_>>() });
        for series in &self.series {
            all[series.key()] = series.json();
        }
        all
    }

    /// A page with a plot for each series, and one for memory.
    pub(super) fn write(&self, path: &Path, model: &str, adapter: &str) -> Result<()> {
        let gigabytes = |name, of: &dyn Fn(&MemoryUse) -> u64| {
            let points = self.memory.iter().map(|(n, memory)| (*n as f64, of(memory) as f64 / 1e9));
            Curve { name, points: points.collect() }
        };
        let all = gigabytes("GPU memory, GB, by context", &|memory| memory.gpu(memory.table > 0));
        let caches = gigabytes("of that, caches", &|memory| memory.caches);
        let axes = Axes { from_zero: true, log_x: true, digits: 2 };
        let plots: String = self.series.iter().map(Series::plot).collect();
        let page = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Scaling of {model}</title>\n\
             <body style=\"font-family: sans-serif; max-width: 760px; margin: 2em auto\">\n\
             <h1>Scaling of {model}</h1>\n<p>{}</p>\n{plots}{}",
            escaped(adapter),
            svg(&[all, caches], axes),
            model = escaped(model),
        );
        output_file::write(path, page.as_bytes())
    }
}
