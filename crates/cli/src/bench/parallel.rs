//! `rullama bench --parallel`: many requests at once through the scheduler.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use anyhow::Result;
use pollster::block_on;
use rullama_runtime::{
    Model, Scheduler,
    adapters::{Adapters, FactorType},
    generate::Prompt,
    options::SamplingOptions,
    scheduler::{Request, RequestId, SchedulerOptions, Update},
};
use serde_json::{Value, json};

use super::{profile::Profile, random, report::profile_json};
use crate::output::table;

/// What so many streams gave.
pub(super) struct Measured {
    streams: usize,
    /// From the first request to the last token.
    elapsed: Duration,
    tokens: usize,
    /// While all streams generate: from the last first token to the first end of a stream.
    together: (usize, Duration),
    /// From the request to its first token, of each stream.
    first: Vec<Duration>,
    /// Between two tokens of a stream, of all streams.
    gaps: Vec<Duration>,
    /// The same while a long prompt is prefilled.
    disturbed: Option<Vec<Duration>>,
    /// Kernel times of a decode pass.
    kernels: Option<Profile>,
}

/// The tokens of each request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    pub(super) prompt: usize,
    pub(super) generate: usize,
    /// Tokens of a prompt that comes when all streams generate, if one does.
    pub(super) long_prompt: Option<usize>,
}

impl Lengths {
    /// Tokens of the longest request.
    pub(super) fn context(self) -> usize {
        (self.prompt + self.generate).max(self.long_prompt.map_or(0, |tokens| tokens + 1))
    }
}

/// Requests at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a> {
    /// Each number of streams that is measured.
    pub(super) streams: &'a [usize],
    pub(super) lengths: Lengths,
    /// What the streams have in turn; none if empty.
    pub(super) adapters: &'a [Adapters],
}

/// Random adapters of a rank: one, unless more are asked for.
pub(super) fn random_adapters(
    model: &Model,
    rank: Option<usize>,
    count: Option<NonZeroUsize>,
) -> Result<Vec<Adapters>> {
    let Some(rank) = rank else { return Ok(Vec::new()) };
    let attach = |number| {
        let adapter = random::adapter(model, rank, number);
        Ok(block_on(model.attach(&[(&adapter, 1.0)], FactorType::default()))?)
    };
    (0..count.map_or(1, NonZeroUsize::get)).map(attach).collect()
}

/// Measures each number of streams once, after a run that compiles its kernels.
pub(super) fn measure(
    model: &Model,
    options: &SchedulerOptions,
    load: &Load<'_>,
    is_profiled: bool,
) -> Result<Vec<Measured>> {
    let Load { streams, lengths, adapters } = *load;
    let context = lengths.context();
    let most = streams.iter().copied().max().unwrap_or(1);
    let tokenizer = model.tokenizer()?;
    let ends = (0..tokenizer.token_count()).filter(|id| tokenizer.is_end(*id));
    let options = SchedulerOptions {
        context: Some(context),
        // Every stream writes as many tokens as the others.
        suppress: ends.collect(),
        sequences: most + 1,
        pool: Some(context.next_multiple_of(64) * (most + 1)),
        keep_prefixes: false,
        ..options.clone()
    };
    let mut scheduler = Scheduler::new(model, &options)?;
    let mut measured = Vec::new();
    for streams in streams {
        run(&mut scheduler, *streams, lengths, adapters)?;
        let mut result = run(&mut scheduler, *streams, lengths, adapters)?;
        if is_profiled {
            let table = block_on(scheduler.profile(*streams))?;
            let run = format!("decode, {streams} rows");
            result.kernels = table.map(|table| Profile { run, table });
        }
        measured.push(result);
    }
    Ok(measured)
}

fn run(
    scheduler: &mut Scheduler,
    streams: usize,
    lengths: Lengths,
    adapters: &[Adapters],
) -> Result<Measured> {
    let vocabulary = scheduler.model().config().vocabulary;
    let start = Instant::now();
    let mut last: BTreeMap<RequestId, Option<Instant>> = BTreeMap::new();
    let request = |stream: usize, prompt: usize, generate: usize| {
        let token = |i: usize| ((stream * 7919 + i * 31) % vocabulary) as u32;
        let prompt = Prompt::tokens((0..prompt).map(token).collect());
        let options = SamplingOptions {
            temperature: 0.0,
            repeat_penalty: 1.0,
            num_predict: i32::try_from(generate)?,
            ..SamplingOptions::default()
        };
        let adapters = adapters.get(stream % adapters.len().max(1)).cloned();
        anyhow::Ok(Request { adapters, ..Request::new(prompt, options, 0) })
    };
    for stream in 0..streams {
        let request = request(stream, lengths.prompt, lengths.generate)?;
        last.insert(scheduler.submit(request)?, None);
    }
    let (mut tokens, mut first, mut gaps, mut failed) = (0, Vec::new(), Vec::new(), None);
    let (mut long, mut disturbed) = (None, lengths.long_prompt.map(|_| Vec::new()));
    let (mut generated, mut together) = (BTreeMap::new(), Together::default());
    loop {
        if let Some(prompt) = lengths.long_prompt
            && long.is_none()
            && first.len() == streams
        {
            long = Some((scheduler.submit(request(streams, prompt, 1)?)?, true));
        }
        let mut sink = |id, update| match update {
            Update::Token(_) if long.is_some_and(|(long, _)| long == id) => {
                long = Some((id, false))
            }
            Update::Token(_) => {
                let now = Instant::now();
                tokens += 1;
                let count = generated.entry(id).or_insert(0_usize);
                *count += 1;
                together.token(now, first.len() == streams, *count == lengths.generate);
                match last.insert(id, Some(now)).flatten() {
                    Some(before) => {
                        gaps.push(now - before);
                        if long.is_some_and(|(_, is_prefilled)| is_prefilled) {
                            disturbed.iter_mut().for_each(|gaps| gaps.push(now - before));
                        }
                    }
                    None => first.push(now - start),
                }
            }
            Update::Admitted { .. } | Update::Event(_) => {}
            Update::Failed(error) => failed = Some(error),
        };
        let busy = block_on(scheduler.step(&mut sink))?;
        if let Some(error) = &failed {
            anyhow::bail!("{error}");
        }
        if !busy {
            break;
        }
    }
    let elapsed = start.elapsed();
    Ok(Measured {
        streams,
        elapsed,
        tokens,
        together: together.total(),
        first,
        gaps,
        disturbed,
        kernels: None,
    })
}

/// Counts the tokens that come while all streams generate.
#[derive(Default)]
struct Together {
    tokens: usize,
    start: Option<Instant>,
    last: Option<Instant>,
    is_over: bool,
}

impl Together {
    fn token(&mut self, now: Instant, all_started: bool, is_last: bool) {
        if !all_started || self.is_over {
            return;
        }
        // The first such token starts the clock.
        self.tokens += usize::from(self.start.is_some());
        self.start.get_or_insert(now);
        self.last = Some(now);
        self.is_over = is_last;
    }

    fn total(&self) -> (usize, Duration) {
        let elapsed =
            self.start.zip(self.last).map_or(Duration::ZERO, |(start, last)| last - start);
        (self.tokens, elapsed)
    }
}

impl Measured {
    /// Tokens per second of all streams, from the first request to the last token.
    fn rate(&self) -> f64 {
        self.tokens as f64 / self.elapsed.as_secs_f64()
    }

    /// Tokens per second of all streams while all of them generate.
    pub(super) fn decode_rate(&self) -> f64 {
        let (tokens, elapsed) = self.together;
        tokens as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// In the order of [`NAMES`].
    fn numbers(&self) -> Vec<f64> {
        let each = self.decode_rate() / self.streams as f64;
        let mut numbers = vec![self.rate(), self.decode_rate(), each];
        let all = [Some(&self.first), Some(&self.gaps), self.disturbed.as_ref()];
        numbers.extend(all.into_iter().flatten().flat_map(|all| percentiles(all)));
        numbers
    }
}

/// The median and the 95th percentile, in milliseconds.
pub(super) fn percentiles(durations: &[Duration]) -> [f64; 2] {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    [50, 95].map(|percent| {
        let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(at).map_or(0.0, |duration| duration.as_secs_f64() * 1e3)
    })
}

const NAMES: [&str; 9] = [
    "tokens_per_second",
    "decode_tokens_per_second",
    "decode_tokens_per_second_and_stream",
    "first_token_ms_p50",
    "first_token_ms_p95",
    "gap_ms_p50",
    "gap_ms_p95",
    "gap_while_prefilling_ms_p50",
    "gap_while_prefilling_ms_p95",
];

pub(super) fn as_json(model: &str, lengths: Lengths, measured: &[Measured]) -> Value {
    let of = |measured: &Measured| {
        let mut line = serde_json::Map::new();
        line.insert("streams".into(), json!(measured.streams));
        let numbers = NAMES.iter().zip(measured.numbers());
        line.extend(numbers.map(|(name, number)| ((*name).to_owned(), json!(number))));
        line.extend(
            measured.kernels.iter().map(|kernels| ("profile".into(), profile_json(kernels))),
        );
        Value::Object(line)
    };
    let lines: Vec<Value> = measured.iter().map(of).collect();
    json!({ "model": model, "prompt": lengths.prompt, "generate": lengths.generate, "parallel": lines })
}

pub(super) fn as_text(measured: &[Measured]) -> String {
    let mut head = vec![
        "STREAMS",
        "TOTAL/S",
        "DECODE/S",
        "PER STREAM",
        "FIRST p50",
        "p95 MS",
        "GAP p50",
        "p95 MS",
    ];
    if measured.iter().any(|measured| measured.disturbed.is_some()) {
        head.extend(["PREFILLING p50", "p95 MS"]);
    }
    head.push("");
    let most = measured.iter().map(Measured::rate).fold(f64::MIN_POSITIVE, f64::max);
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for measured in measured {
        let bar = "#".repeat((measured.rate() / most * 40.0).round() as usize);
        let numbers = measured.numbers().into_iter().map(|number| format!("{number:.1}"));
        let numbers: Vec<String> = numbers.collect();
        rows.push([vec![measured.streams.to_string()], numbers, vec![bar]].concat());
    }
    let mut text = table(&rows);
    for measured in measured {
        let kernels = measured.kernels.iter();
        text.extend(kernels.map(|Profile { run, table }| format!("\n{run}\n{table}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Together, percentiles};

    #[test]
    fn the_decode_rate_counts_tokens_while_all_streams_generate() {
        let (start, mut together) = (Instant::now(), Together::default());
        let mut token = |ms, all_started, is_last| {
            together.token(start + Duration::from_millis(ms), all_started, is_last);
        };
        token(0, false, false);
        token(10, true, false);
        token(14, true, false);
        token(20, true, true);
        token(90, true, true);
        assert_eq!(together.total(), (2, Duration::from_millis(10)));
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let all: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentiles(&all), [50.0, 95.0]);
        assert_eq!(percentiles(&all[..1]), [100.0, 100.0]);
        assert_eq!(percentiles(&[]), [0.0, 0.0]);
    }
}
