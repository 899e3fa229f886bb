//! `rullama bench --parallel … --http`: the same requests to the scheduler alone and over HTTP, so that the difference is what HTTP costs.

mod client;

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use pollster::block_on;
use rullama::{Location, OpenOptions};
use rullama_host::{Host, HostOptions};
use rullama_runtime::{
    Model, Scheduler,
    generate::{Event, Prompt},
    model::hinted_options,
    scheduler::{Request, RequestId, Update},
};
use rullama_server::{Options, PlainFile, Server};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::parallel::percentiles;
use crate::{locate::demo_file, output::table};

/// How long the model may take to free its GPU at the end.
const UNLOADING: Duration = Duration::from_secs(5);
/// What the server calls the model.
const NAME: &str = "bench";

/// Requests of one measurement: every stream sends some, one after another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) streams: usize,
    /// Requests of each stream.
    pub(super) requests: usize,
    /// Tokens of each prompt.
    pub(super) prompt: usize,
    /// Most tokens of each completion.
    pub(super) generate: usize,
    /// Whether tokens are drawn; otherwise the most likely one is taken.
    pub(super) is_drawn: bool,
}

/// A request of a stream.
#[derive(Debug, Clone, Copy)]
struct Place {
    stream: usize,
    number: usize,
}

impl Load {
    /// A prompt that no other request begins like, so that none finds its beginning in the KV cache.
    fn prompt(self, place: Place, vocabulary: usize) -> Vec<u32> {
        let start = (place.number * self.streams + place.stream) * 7919;
        (0..self.prompt).map(|i| ((start + i * 31) % vocabulary) as u32).collect()
    }

    fn seed(self, place: Place) -> u32 {
        (place.number * self.streams + place.stream) as u32
    }

    fn temperature(self) -> f32 {
        if self.is_drawn { 1.0 } else { 0.0 }
    }

    /// The request as the scheduler takes it.
    fn request(self, model: &Model, place: Place) -> Result<Request> {
        let mut options = hinted_options(model.gguf()).0;
        options.temperature = self.temperature();
        options.num_predict = i32::try_from(self.generate)?;
        let prompt = Prompt::tokens(self.prompt(place, model.config().vocabulary));
        Ok(Request::new(prompt, options, self.seed(place)))
    }

    /// The same request for `/v1/completions`.
    fn body(self, vocabulary: usize, place: Place, is_streamed: bool) -> Value {
        let mut body = json!({
            "model": NAME, "raw": true, "prompt": self.prompt(place, vocabulary),
            "temperature": self.temperature(), "seed": self.seed(place),
            "max_tokens": self.generate, "stream": is_streamed,
        });
        if is_streamed {
            body["stream_options"] = json!({ "include_usage": true });
        }
        body
    }
}

/// What the requests of a load took.
#[derive(Debug, Default)]
struct Taken {
    tokens: usize,
    /// From the first request to the end of the last reply.
    elapsed: Duration,
    /// From a request to its first token.
    first: Vec<Duration>,
    /// Between two tokens of a stream.
    gaps: Vec<Duration>,
}

impl Taken {
    fn rate(&self) -> f64 {
        self.tokens as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// What is lost against another rate, in per cent.
    fn lost(&self, alone: &Self) -> f64 {
        (1.0 - self.rate() / alone.rate()) * 100.0
    }

    fn json(&self) -> Value {
        let ([first, first_95], [gap, gap_95]) =
            (percentiles(&self.first), percentiles(&self.gaps));
        json!({
            "tokens": self.tokens, "tokens_per_second": self.rate(),
            "first_token_ms_p50": first, "first_token_ms_p95": first_95, "gap_ms_p50": gap, "gap_ms_p95": gap_95,
        })
    }
}

/// A load three ways.
pub(super) struct Compared {
    load: Load,
    scheduler: Taken,
    streamed: Taken,
    /// Over HTTP with one body per reply: no frame and no write per token.
    whole: Taken,
}

/// Runs the loads on the scheduler alone, then over HTTP; each once to compile its kernels and once to be measured.
pub(super) fn compare(
    location: Location,
    model: Model,
    open: OpenOptions,
    loads: &[Load],
) -> Result<Vec<Compared>> {
    let most = loads.iter().map(|load| load.streams).max().unwrap_or(1);
    let options = HostOptions { open, parallel: most, ..HostOptions::default() };
    let vocabulary = model.config().vocabulary;
    let mut alone = Vec::new();
    let mut scheduler = options.scheduler(&model, options.open.context)?;
    for load in loads {
        run(&mut scheduler, *load)?;
        alone.push(run(&mut scheduler, *load)?);
    }
    // The server loads the model again; both need not fit the GPU.
    drop((scheduler, model));
    served(location, options, |url| {
        let mut compared = Vec::new();
        for (load, scheduler) in loads.iter().zip(alone) {
            client::run(url, *load, vocabulary, true)?;
            let streamed = client::run(url, *load, vocabulary, true)?;
            let whole = client::run(url, *load, vocabulary, false)?;
            if streamed.tokens != scheduler.tokens || whole.tokens != scheduler.tokens {
                bail!(
                    "the replies differ: {} tokens by the scheduler, {} streamed, {} whole",
                    scheduler.tokens,
                    streamed.tokens,
                    whole.tokens
                );
            }
            compared.push(Compared { load: *load, scheduler, streamed, whole });
        }
        Ok(compared)
    })
}

/// A request that runs: its place, and when it was sent and wrote its last token.
type Open = (Place, Instant, Option<Instant>);

/// Runs a load on the scheduler. A stream's next request follows as soon as its last one has ended, as over HTTP.
fn run(scheduler: &mut Scheduler, load: Load) -> Result<Taken> {
    let start = Instant::now();
    let mut taken = Taken::default();
    let mut open: HashMap<RequestId, Open> = HashMap::new();
    let mut next: Vec<Place> =
        (0..load.streams).map(|stream| Place { stream, number: 0 }).collect();
    loop {
        for place in next.drain(..).filter(|place| place.number < load.requests) {
            let request = load.request(scheduler.model(), place)?;
            open.insert(scheduler.submit(request)?, (place, Instant::now(), None));
        }
        if open.is_empty() {
            break;
        }
        let mut failed = None;
        let mut sink = |id: RequestId, update| match update {
            Update::Token(_) => {
                let Some((_, sent, last)) = open.get_mut(&id) else { return };
                let now = Instant::now();
                taken.tokens += 1;
                match last.replace(now) {
                    Some(before) => taken.gaps.push(now - before),
                    None => taken.first.push(now - *sent),
                }
            }
            Update::Event(Event::Done(_)) => {
                if let Some((Place { stream, number }, ..)) = open.remove(&id) {
                    next.push(Place { stream, number: number + 1 });
                }
            }
            Update::Admitted { .. } | Update::Event(_) => {}
            Update::Failed(error) => failed = Some(error),
        };
        block_on(scheduler.step(&mut sink))?;
        if let Some(error) = failed {
            bail!("{error}");
        }
    }
    taken.elapsed = start.elapsed();
    Ok(taken)
}

/// Serves the model on a free port while `work` runs with its URL.
fn served<T>(
    location: Location,
    host: HostOptions,
    work: impl FnOnce(&str) -> Result<T>,
) -> Result<T> {
    let demo = matches!(location, Location::Demo).then(demo_file).transpose()?;
    let path = match (location, &demo) {
        (_, Some(demo)) => demo.path().to_owned(),
        (Location::Path(path), _) => path,
        (Location::Store(files), _) if files.shards.is_empty() => files.model.path.clone(),
        (Location::Store(_) | Location::Url(_) | Location::Demo, _) => {
            bail!("--http needs a model in one file on this machine: give its name or path")
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    let host = Arc::new(Host::new(host));
    let mut options = Options::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    options.files = vec![PlainFile { name: NAME.to_owned(), path }];
    options.engine = Some(Arc::clone(&host) as _);
    let server = runtime.block_on(Server::bind(options))?;
    let url = server.url();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = runtime.spawn(server.run(async {
        // It ends when the sender is dropped.
        let _ = stopped.await;
    }));
    let result = work(url.trim_end_matches('/'));
    drop(stop);
    runtime.block_on(running)??;
    host.close(UNLOADING);
    result
}

pub(super) fn as_json(model: &str, compared: &[Compared]) -> Value {
    let of = |compared: &Compared| {
        let Compared { load, scheduler, streamed, whole } = compared;
        json!({
            "streams": load.streams, "requests": load.requests, "sampling": sampling(*load),
            "scheduler": scheduler.json(), "http": streamed.json(), "http_whole": whole.json(),
            "lost_percent": streamed.lost(scheduler), "lost_percent_whole": whole.lost(scheduler),
        })
    };
    let load = compared.first().map(|compared| compared.load);
    json!({
        "model": model, "prompt": load.map(|load| load.prompt), "generate": load.map(|load| load.generate),
        "http": compared.iter().map(of).collect::<Vec<_>>(),
    })
}

pub(super) fn as_text(compared: &[Compared]) -> String {
    let head = [
        "STREAMS",
        "SAMPLING",
        "SCHEDULER/S",
        "HTTP/S",
        "LOST %",
        "WHOLE/S",
        "LOST %",
        "FIRST p50",
        "HTTP MS",
        "GAP p95",
        "HTTP MS",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for Compared { load, scheduler, streamed, whole } in compared {
        let rates = [scheduler.rate(), streamed.rate(), streamed.lost(scheduler), whole.rate()];
        let times = [
            percentiles(&scheduler.first)[0],
            percentiles(&streamed.first)[0],
            percentiles(&scheduler.gaps)[1],
            percentiles(&streamed.gaps)[1],
        ];
        let numbers = rates.into_iter().chain([whole.lost(scheduler)]).chain(times);
        let mut row = vec![load.streams.to_string(), sampling(*load).to_owned()];
        row.extend(numbers.map(|number| format!("{number:.1}")));
        rows.push(row);
    }
    table(&rows)
}

fn sampling(load: Load) -> &'static str {
    if load.is_drawn { "drawn" } else { "greedy" }
}
