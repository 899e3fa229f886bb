//! The block of times that Ollama's users know, and the memory.

use std::time::Duration;

use rullama_runtime::generate::Done;

use crate::{memory, output::bytes};

/// Where the time went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Loading the model; nothing but in the first answer.
    pub(super) load: Duration,
    /// Encoding images and audio.
    pub(super) media: Duration,
    /// To the first token.
    pub(super) prompt: Duration,
    /// The other tokens.
    pub(super) answer: Duration,
}

/// The block, a line for each number; without `gpu_bytes` for a reply of a server, which tells no memory and no cached tokens.
pub(super) fn block(done: &Done, times: &Times, gpu_bytes: Option<u64>) -> String {
    let read = done.prompt_tokens - done.cached_tokens.min(done.prompt_tokens);
    // The first token belongs to the prompt's time.
    let written = done.answer_tokens.saturating_sub(1);
    let duration = |time: Duration| format!("{time:.3?}");
    let rate = |tokens: usize, time: Duration| {
        let seconds = time.as_secs_f64();
        format!("{:.2} tokens/s", if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 })
    };
    let cached = match gpu_bytes {
        Some(_) => format!(", {} cached", done.cached_tokens),
        None => String::new(),
    };
    let memory = gpu_bytes.map(|gpu| {
        let host = memory::own().map_or_else(|| "unknown".into(), bytes);
        [("gpu memory", bytes(gpu)), ("host memory", host)]
    });
    let media = (!times.media.is_zero()).then(|| ("media duration", duration(times.media)));
    let start = [
        ("total duration", duration(times.load + times.media + times.prompt + times.answer)),
        ("load duration", duration(times.load)),
    ];
    let rows = [
        ("prompt eval count", format!("{read} token(s){cached}")),
        ("prompt eval duration", duration(times.prompt)),
        ("prompt eval rate", rate(read, times.prompt)),
        ("eval count", format!("{} token(s)", done.answer_tokens)),
        ("eval duration", duration(times.answer)),
        ("eval rate", rate(written, times.answer)),
    ];
    let line = |(name, value): (&str, String)| format!("{:<21} {value}\n", format!("{name}:"));
    start
        .into_iter()
        .chain(media)
        .chain(rows)
        .chain(memory.into_iter().flatten())
        .map(line)
        .collect()
}

#[cfg(test)]
mod tests {
    use rullama_runtime::generate::Finish;

    use super::*;

    #[test]
    fn rates_are_those_of_tokens_that_were_computed() {
        let done =
            Done { finish: Finish::Stop, prompt_tokens: 30, cached_tokens: 10, answer_tokens: 11 };
        let times = Times {
            load: Duration::from_millis(1500),
            media: Duration::from_millis(250),
            prompt: Duration::from_millis(500),
            answer: Duration::from_secs(2),
        };
        let text = block(&done, &times, Some(7_200_000_000));
        for line in [
            "total duration:       4.250s",
            "media duration:       250.000ms",
            "load duration:        1.500s",
            "prompt eval count:    20 token(s), 10 cached",
            "prompt eval duration: 500.000ms",
            "prompt eval rate:     40.00 tokens/s",
            "eval count:           11 token(s)",
            "eval rate:            5.00 tokens/s",
            "gpu memory:           7.2 GB",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line:?} in:\n{text}");
        }
        let of_server = block(&done, &times, None);
        assert!(!of_server.contains("memory") && !of_server.contains("cached"), "{of_server}");
    }
}
