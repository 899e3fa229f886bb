//! Times sampling over a vocabulary of Gemma's size: `cargo run --release --example sampling_time`.
#![expect(clippy::print_stdout, reason = "a program whose result is a table")]

use std::{hint::black_box, time::Instant};

use rullama_sampling::{
    options::SamplingOptions,
    sampling::{Sampler, SamplingError, logprobs::logprobs},
};

const VOCABULARY: usize = 262_144;
const ROUNDS: usize = 200;

fn main() -> Result<(), SamplingError> {
    let logits = random_logits();
    let gemma = SamplingOptions::default();
    let cases = [
        ("default", gemma.clone()),
        ("greedy", SamplingOptions { temperature: 0.0, ..gemma.clone() }),
        ("penalties", SamplingOptions { repeat_penalty: 1.1, ..gemma.clone() }),
        ("no top k", SamplingOptions { top_k: 0, ..gemma.clone() }),
        ("min p only", SamplingOptions { top_k: 0, top_p: 1.0, min_p: 0.05, ..gemma.clone() }),
        ("no filter", SamplingOptions { top_k: 0, top_p: 1.0, ..gemma.clone() }),
        ("mirostat 2", SamplingOptions { mirostat: 2, ..gemma }),
    ];
    for (name, options) in cases {
        let mut sampler = Sampler::new(&options, 42)?;
        report(name, || {
            let drawn = sampler.sample(&logits)?;
            sampler.accept(drawn.id);
            Ok(())
        })?;
    }
    report("logprobs", || {
        black_box(logprobs(&logits, 1, 20));
        Ok(())
    })
}

/// Prints the median of some rounds.
fn report(
    name: &str,
    mut round: impl FnMut() -> Result<(), SamplingError>,
) -> Result<(), SamplingError> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("{name:12} {:8.1} µs", times[ROUNDS / 2].as_secs_f64() * 1e6);
    Ok(())
}

/// Sums of uniforms: bell-shaped, between −24 and 24.
fn random_logits() -> Vec<f32> {
    let mut state = 1u32;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32
    };
    (0..VOCABULARY).map(|_| (0..6).map(|_| uniform() * 8.0 - 4.0).sum()).collect()
}
