//! `rullama perplexity`: how well a model predicts a text.
//!
//! The text is cut into windows, each after a beginning-of-sequence token in place of its first one. Without a stride, windows
//! do not overlap and the second half of each is scored; with one, each scores what the one before did not reach.

use std::{
    io::Read,
    ops::Range,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args as Group;
use pollster::block_on;
use rullama_runtime::{Session, model::CacheType, session::SessionOptions};
use rullama_tokenizer::{Special, Tokenizer};
use serde_json::json;

use crate::{
    adapters::{self, AdapterArgs},
    load::{DeviceArgs, Loader},
    locate::Stores,
    output::{print, print_json, progress, table},
};

#[derive(Debug, Group)]
pub(crate) struct PerplexityArgs {
    /// Name, path or URL
    model: String,
    /// Text file; - is standard input
    file: PathBuf,
    /// Tokens per window
    #[arg(long, value_name = "TOKENS", default_value_t = 512)]
    ctx: usize,
    /// Slide windows by this many tokens instead of using windows that do not overlap
    #[arg(long, value_name = "TOKENS")]
    stride: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Tokens per window, and those among them whose prediction counts.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    tokens: Range<usize>,
    scored: Range<usize>,
}

/// Sums of losses.
#[derive(Debug, Default, Clone, Copy)]
struct Losses {
    count: u64,
    sum: f64,
    squares: f64,
}

pub(crate) fn perplexity(stores: &Stores, args: &PerplexityArgs) -> Result<()> {
    if args.stride.is_some_and(|stride| stride == 0 || stride >= args.ctx) {
        bail!("--stride must be at least 1 and less than --ctx, which is {}", args.ctx);
    }
    let text = text(args)?;
    let place = stores.find(&args.model)?;
    let adapters = args.adapters.read(&place)?;
    let loader = Loader::new(place, &args.device, Some(args.ctx), CacheType::F16).exact();
    let (model, _) = loader.load()?;
    let tokens = tokens(model.tokenizer()?, &text);
    let windows = match args.stride {
        None => side_by_side(tokens.len(), args.ctx),
        Some(stride) => sliding(tokens.len(), args.ctx, stride),
    };
    if windows.is_empty() {
        bail!(
            "{} tokens are too few for windows of {}; give a longer text",
            tokens.len(),
            args.ctx
        );
    }
    let options = SessionOptions {
        context: Some(args.ctx),
        cache: loader.options.cache,
        ..SessionOptions::default()
    };
    let mut session = adapters::session(&adapters, &model, &options, &loader)?;
    let bar = progress(tokens.len() as u64, "scoring");
    let (start, mut losses) = (Instant::now(), Losses::default());
    for window in &windows {
        score(&mut session, &tokens, window, &mut losses)?;
        bar.set_position(window.tokens.end as u64);
    }
    bar.finish_and_clear();
    report(args, (tokens.len(), windows.len()), &losses, start.elapsed())
}

fn text(args: &PerplexityArgs) -> Result<String> {
    if args.file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(&args.file).with_context(|| args.file.display().to_string())
}

/// The text after a beginning-of-sequence token.
fn tokens(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut tokens = tokenizer.encode(text, Special::None);
    tokens.splice(0..0, tokenizer.begin());
    tokens
}

/// Windows that do not overlap, the second half of each scored; a text shorter than one is one.
fn side_by_side(count: usize, size: usize) -> Vec<Window> {
    let size = size.min(count);
    if size < 3 {
        return Vec::new();
    }
    (0..count / size)
        .map(|i| {
            let tokens = i * size..(i + 1) * size;
            // The token after the first half is what the half predicts: llama.cpp starts after it, and so do we.
            let scored = tokens.start + size / 2 + 1..tokens.end;
            Window { tokens, scored }
        })
        .collect()
}

/// Windows that overlap; each scores what those before did not reach.
fn sliding(count: usize, size: usize, stride: usize) -> Vec<Window> {
    let mut windows = Vec::new();
    let (mut start, mut reached) = (0, 1);
    while reached < count && stride > 0 && stride < size {
        let end = (start + size).min(count);
        windows.push(Window { tokens: start..end, scored: reached..end });
        reached = end;
        start += stride;
    }
    windows
}

fn score(
    session: &mut Session,
    tokens: &[u32],
    window: &Window,
    losses: &mut Losses,
) -> Result<()> {
    let mut ids = tokens[window.tokens.clone()].to_vec();
    if let (Some(first), Some(bos)) = (ids.first_mut(), session.model().tokenizer()?.begin()) {
        *first = bos;
    }
    // The token before the first scored one makes the first logits that count; nothing follows the last token.
    let first = window.scored.start - window.tokens.start;
    session.rewind(0);
    session.extend(&ids[..first])?;
    block_on(session.prefill(&mut |_| true))?;
    session.extend(&ids[first..ids.len() - 1])?;
    let width = session.model().config().vocabulary;
    let mut targets = ids[first..].iter();
    block_on(session.all_logits(&mut |rows| {
        for (row, target) in rows.chunks_exact(width).zip(targets.by_ref()) {
            losses.add(loss(row, *target));
        }
    }))?;
    Ok(())
}

/// The negative log-probability of a token.
fn loss(logits: &[f32], token: u32) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::MIN, f32::max));
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum();
    sum.ln() + largest - f64::from(logits[token as usize])
}

impl Losses {
    fn add(&mut self, loss: f64) {
        self.count += 1;
        self.sum += loss;
        self.squares += loss * loss;
    }

    /// Perplexity and its standard error.
    fn perplexity(&self) -> (f64, f64) {
        let count = self.count as f64;
        let mean = self.sum / count;
        let variance = (self.squares / count - mean * mean).max(0.0);
        let error = if self.count > 1 { (variance / (count - 1.0)).sqrt() } else { 0.0 };
        (mean.exp(), error * mean.exp())
    }
}

fn report(
    args: &PerplexityArgs,
    (tokens, windows): (usize, usize),
    losses: &Losses,
    time: Duration,
) -> Result<()> {
    let (perplexity, error) = losses.perplexity();
    if args.json {
        return print_json(&json!({
            "model": args.model, "perplexity": perplexity, "error": error,
            "loss": losses.sum / losses.count as f64,
            "tokens": tokens, "scored": losses.count, "windows": windows,
            "ctx": args.ctx, "stride": args.stride, "seconds": time.as_secs_f64(),
        }));
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    print(&table(&[
        row("perplexity", format!("{perplexity:.4} ± {error:.4}")),
        row("tokens", format!("{tokens}, {} of them scored in {windows} windows", losses.count)),
        row("time", format!("{:.2} s", time.as_secs_f64())),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(tokens: Range<usize>, scored: Range<usize>) -> Window {
        Window { tokens, scored }
    }

    #[test]
    fn windows_side_by_side() {
        let whole = [window(0..8, 5..8), window(8..16, 13..16)];
        assert_eq!(side_by_side(16, 8), whole);
        assert_eq!(side_by_side(23, 8), whole, "what is left over is not scored");
        assert_eq!(side_by_side(7, 8), [window(0..7, 4..7)]);
        assert_eq!(side_by_side(2, 8), []);
    }

    #[test]
    fn sliding_windows_score_every_token_once() {
        assert_eq!(
            sliding(12, 8, 3),
            [window(0..8, 1..8), window(3..11, 8..11), window(6..12, 11..12)]
        );
        assert_eq!(sliding(5, 8, 4), [window(0..5, 1..5)]);
        for (size, stride) in [(8, 0), (8, 8), (8, 9)] {
            assert_eq!(sliding(20, size, stride), []);
        }
    }

    #[test]
    fn losses_of_an_even_distribution() {
        let mut losses = Losses::default();
        (0..4).for_each(|id| losses.add(loss(&[0.5; 10], id)));
        let (perplexity, error) = losses.perplexity();
        assert!((perplexity - 10.0).abs() < 1e-9 && error < 1e-6, "{perplexity} ± {error}");
        assert!(loss(&[0.0, f32::NEG_INFINITY], 0).abs() < 1e-9);
    }
}
