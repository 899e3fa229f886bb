//! Loading a vocabulary and encoding text, raced against the `tokenizers` crate on one thread; then the same vocabulary with scores instead
//! of merges, as Gemma 3 has them, against the one with merges.
//!
//! Both sides must give the same ids before anything is timed. `cargo run --release` prints two tables.

mod corpus;
#[path = "../../../crates/tokenizer/tests/it/gguf.rs"]
mod gguf;
mod oracle;

use std::{
    collections::HashMap,
    hint::black_box,
    io::Read,
    time::{Duration, Instant},
};

use rullama_source::Bytes;
use rullama_tokenizer::{Special, Tokenizer, Vocab};
use ruzstd::decoding::StreamingDecoder;

/// How long each side of a row is repeated.
const PATIENCE: Duration = Duration::from_secs(3);

fn main() {
    let file = vocabulary();
    let header = gguf::open(file.clone());
    let vocab = gguf::vocab(&header).expect("a vocabulary");
    let json = oracle::tokenizer_json(&vocab);

    println!("{:<30} {:>14} {:>14} {:>8}", "", "tokenizers", "rullama", "faster");
    race("loading", None, || oracle::load(&json), || load(&file));

    let (theirs, ours) = (oracle::load(&json), load(&file));
    for corpus::Text { name, text } in corpus::texts(&vocab.tokens) {
        let their_encode = || oracle::encode(&theirs, &text);
        let our_encode = || ours.encode(&text, Special::Parse);
        assert_eq!(their_encode(), our_encode(), "{name}: different ids");
        race(name, Some(text.len()), their_encode, our_encode);
    }

    println!("\n{:<30} {:>14} {:>14} {:>8}", "", "merges", "scores", "faster");
    let scores = scores(&vocab);
    let scored = || scored(gguf::vocab(&header).expect("a vocabulary"), &scores);
    race("loading, without the header", None, || Tokenizer::new(&vocab), scored);
    let scored = scored();
    for corpus::Text { name, text } in corpus::texts(&vocab.tokens) {
        let merged = || ours.encode(&text, Special::Parse);
        let scored = || scored.encode(&text, Special::Parse);
        assert_eq!(merged(), scored(), "{name}: different ids");
        race(name, Some(text.len()), merged, scored);
    }
}

/// The rank of the first merge that gives a token, as its score: the token of a higher score is merged first.
fn scores(vocab: &Vocab<'_>) -> Vec<f32> {
    let ids: HashMap<&str, usize> = vocab.tokens.iter().copied().zip(0..).collect();
    let mut scores = vec![0.0; vocab.tokens.len()];
    // The first merge comes last, so that it is the one that stays.
    for (rank, merge) in vocab.merges.iter().enumerate().rev() {
        let pair = merge.split_once(' ').map(|(left, right)| format!("{left}{right}"));
        if let Some(id) = pair.and_then(|text| ids.get(text.as_str())) {
            scores[*id] = -(rank as f32);
        }
    }
    scores
}

/// The same vocabulary with scores instead of merges.
fn scored(vocab: Vocab<'_>, scores: &[f32]) -> Tokenizer {
    let (model, merges) = (Some("llama"), Vec::new());
    let vocab =
        Vocab { model, merges, scores: Some(scores), add_space_prefix: Some(false), ..vocab };
    Tokenizer::new(&vocab).expect("a sound one")
}

/// Gemma 4's vocabulary as a GGUF file.
fn vocabulary() -> Bytes {
    let packed = include_bytes!("../../../goldens/tokenizer/ggml-vocab-gemma-4.gguf.zst");
    let mut file = Vec::new();
    StreamingDecoder::new(packed.as_slice())
        .expect("a zstd frame")
        .read_to_end(&mut file)
        .expect("a whole one");
    file.into()
}

/// From the bytes of a GGUF file to a tokenizer.
fn load(file: &Bytes) -> Tokenizer {
    let file = gguf::open(file.clone());
    Tokenizer::new(&gguf::vocab(&file).expect("a vocabulary")).expect("a sound one")
}

/// Prints one row: times, or throughput where there is a length.
fn race<A, B>(name: &str, bytes: Option<usize>, theirs: impl Fn() -> A, ours: impl Fn() -> B) {
    let (theirs, ours) = (best(theirs), best(ours));
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    let show = |time: Duration| match bytes {
        Some(bytes) => format!("{:.1} MB/s", bytes as f64 / time.as_secs_f64() / 1e6),
        None => format!("{:.1} ms", time.as_secs_f64() * 1e3),
    };
    println!("{name:<30} {:>14} {:>14} {ratio:>7.1}x", show(theirs), show(ours));
}

/// The shortest of many runs: what the machine does when nothing disturbs it.
fn best<T>(run: impl Fn() -> T) -> Duration {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while best == Duration::MAX || begin.elapsed() < PATIENCE {
        let start = Instant::now();
        let result = black_box(run());
        best = best.min(start.elapsed());
        drop(result);
    }
    best
}
