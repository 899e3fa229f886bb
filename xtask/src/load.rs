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

/// Sends requests from many clients to a server with a tiny model, and prints how long they took.
pub(crate) fn load(options: &[&str]) -> Result<()> {
    let count = match options {
        [] => REQUESTS,
        ["--requests", count] => count.parse().context("--requests N")?,
        _ => bail!("usage: cargo xtask load [--requests N]"),
    };
    let models = [("micro", "gguf/micro-e2b-Q8_0.gguf")];
    let serving = Serving::start(&program()?, &models, &["--device", "cpu", "--ctx", "128"])?;
    let address = serving.url.trim_start_matches("http://").to_owned();
    // The first requests load the model and fill all pools.
    run(&address, CLIENTS * 2)?;
    let before = serving.resident();
    let mut times = run(&address, count)?;
    settled(&address)?;
    let after = serving.resident();
    times.sort_unstable();
    ensure!(!times.is_empty(), "no request was to be answered in full");
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_millis();
    say(&format!(
        "{count} requests of {CLIENTS} clients: p50 {} ms, p95 {} ms, longest {} ms",
        at(50),
        at(95),
        at(100)
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

/// Sends requests; how long those took that were to be answered in full.
fn run(address: &str, count: usize) -> Result<Vec<Duration>> {
    let (next, times) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
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
                    match request(address, number) {
                        Ok(time) => {
                            times.lock().unwrap_or_else(PoisonError::into_inner).extend(time);
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
        None => Ok(times.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// One request of a kind that its number decides.
fn request(address: &str, number: usize) -> Result<Option<Duration>> {
    // Neighbours differ, and every run is the same.
    let kind = number.wrapping_mul(2_654_435_761) >> 7 & 15;
    let body = json!({
        "model": "micro", "prompt": format!("number {number}"), "raw": true, "stream": kind.is_multiple_of(2),
        "options": { "num_predict": 4 + number % 5, "seed": number },
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
    Ok(Some(start.elapsed()))
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
