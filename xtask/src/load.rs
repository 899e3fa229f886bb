//! Many clients at once: some leave early, some send nonsense. No reply may be lost and nothing may be left behind.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{command::say, serving::Serving, test::program};

const CLIENTS: usize = 64;
const REQUESTS: usize = 2000;
/// Memory that may stay after the first requests: pools of the allocator and of threads, not a reply each.
const MAX_GROWTH: u64 = 64 << 10;

/// What is served, and by which program.
struct Options {
    requests: usize,
    /// A copied program needs neither cargo nor a toolchain.
    program: Option<String>,
    /// A file other than the tiny golden model.
    model: Option<String>,
    device: String,
    /// Most tokens of a reply.
    tokens: usize,
}

/// Sends requests from many clients to a server, with a tiny model by default, and prints how long they took.
pub(crate) fn load(arguments: &[&str]) -> Result<()> {
    let options = options(arguments)?;
    let program = options.program.map_or_else(program, Ok)?;
    let model = options.model.unwrap_or_else(|| "gguf/micro-e2b-Q8_0.gguf".to_owned());
    let context = (options.tokens + 120).to_string();
    let serving = Serving::start(
        &program,
        &[("micro", &model)],
        &["--device", &options.device, "--ctx", &context, "--parallel", "32"],
    )?;
    let (count, tokens) = (options.requests, options.tokens);
    let address = serving.url.trim_start_matches("http://").to_owned();
    // The first requests load the model and fill all pools.
    run(&address, CLIENTS * 2, tokens)?;
    let before = serving.resident();
    let start = Instant::now();
    let replies = run(&address, count, tokens)?;
    let elapsed = start.elapsed();
    settled(&address)?;
    let after = serving.resident();
    let mut times: Vec<Duration> = replies.iter().map(|reply| reply.time).collect();
    times.sort_unstable();
    ensure!(!times.is_empty(), "no request was to be answered in full");
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_millis();
    let generated: u64 = replies.iter().map(|reply| reply.tokens).sum();
    say(&format!(
        "{count} requests of {CLIENTS} clients: p50 {} ms, p95 {} ms, longest {} ms; {} full replies, {generated} tokens, {:.0} per second",
        at(50),
        at(95),
        at(100),
        replies.len(),
        generated as f64 / elapsed.as_secs_f64(),
    ));
    if let (Some(before), Some(after)) = (before, after) {
        let growth = after.saturating_sub(before);
        say(&format!(
            "no reply lost, all KV pages back; memory: {before} kB before, {after} kB after"
        ));
        ensure!(growth <= MAX_GROWTH, "the server kept {growth} kB");
    }
    Ok(())
}

fn options(arguments: &[&str]) -> Result<Options> {
    let mut options =
        Options { requests: REQUESTS, program: None, model: None, device: "cpu".into(), tokens: 8 };
    let mut arguments = arguments.iter().copied();
    while let Some(option) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{option} needs a value"))?;
        match option {
            "--requests" => options.requests = value.parse().context("--requests N")?,
            "--program" => options.program = Some(value.to_owned()),
            "--model" => options.model = Some(value.to_owned()),
            "--device" => value.clone_into(&mut options.device),
            "--tokens" => options.tokens = value.parse().context("--tokens N")?,
            other => bail!("unknown option `{other}`"),
        }
    }
    ensure!(options.tokens >= 8, "--tokens: at least 8");
    Ok(options)
}

/// A reply that was read to its end.
struct Reply {
    time: Duration,
    tokens: u64,
}

/// Sends requests; the replies to those that were to be answered in full.
fn run(address: &str, count: usize, tokens: usize) -> Result<Vec<Reply>> {
    let (next, replies) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let failed = failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                    if number >= count || failed {
                        return;
                    }
                    match request(address, number, tokens) {
                        Ok(reply) => {
                            replies.lock().unwrap_or_else(PoisonError::into_inner).extend(reply);
                        }
                        Err(error) => {
                            let error = error.context(format!("request {number}"));
                            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(replies.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// One request of a kind that its number decides.
fn request(address: &str, number: usize, tokens: usize) -> Result<Option<Reply>> {
    // Neighbours differ, and every run is the same.
    let kind = number.wrapping_mul(2_654_435_761) >> 7 & 15;
    let body = json!({
        "model": "micro", "prompt": format!("number {number}"), "raw": true, "stream": kind.is_multiple_of(2),
        "options": { "num_predict": tokens / 2 + number % (tokens / 2 + 1), "seed": number },
    });
    let body = match kind {
        13 => "{\"model\":".to_owned(),
        14 => json!({ "model": "nobody", "prompt": "x" }).to_string(),
        15 => {
            json!({ "model": "micro", "prompt": "x", "options": { "top_k": "many" } }).to_string()
        }
        _ => body.to_string(),
    };
    let start = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(300)))?;
    write!(
        stream,
        "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    if kind == 10 || kind == 12 {
        // Leaves: at once, or with the first bytes.
        if kind == 12 {
            let _ = stream.read(&mut [0; 16])?;
        }
        return Ok(None);
    }
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let status = reply.get(9..12).unwrap_or_default().to_owned();
    let wanted = match kind {
        13 | 15 => "400",
        14 => "404",
        _ => "200",
    };
    ensure!(status == wanted, "kind {kind}: {reply}");
    if wanted != "200" {
        return Ok(None);
    }
    let last = reply.lines().rfind(|line| line.starts_with('{')).context("no reply")?;
    let last: Value = serde_json::from_str(last).with_context(|| reply.clone())?;
    ensure!(last["done"] == true, "the reply was lost: {reply}");
    let tokens = last["eval_count"].as_u64().context("no count of tokens")?;
    Ok(Some(Reply { time: start.elapsed(), tokens }))
}

/// Waits until the server has nothing left to do and all KV memory is back.
fn settled(address: &str) -> Result<()> {
    let start = Instant::now();
    loop {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let is_zero = |name: &str| text.contains(&format!("llamacpp:{name} 0\n"));
        if ["requests_processing", "requests_deferred", "kv_cache_usage_ratio"]
            .iter()
            .all(|name| is_zero(name))
        {
            return Ok(());
        }
        ensure!(start.elapsed() < Duration::from_secs(60), "requests or KV pages are left: {text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
