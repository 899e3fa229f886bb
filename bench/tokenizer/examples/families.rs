//! The three kinds of vocabulary side by side: merge list (Gemma 4), scores (Gemma 3), byte level (SmolLM2).
//!
//! Gemma 3's vocabulary is made of Gemma 4's: scores fall with the id, runs of blanks are user-defined tokens.
//! `cargo run --release --example families` prints a table.

#[path = "../src/corpus.rs"]
mod corpus;
#[path = "../../../crates/tokenizer/tests/it/gguf.rs"]
mod gguf;

use std::{
    hint::black_box,
    io::Read,
    time::{Duration, Instant},
};

use rullama_tokenizer::{Special, Tokenizer, Vocab};
use ruzstd::decoding::StreamingDecoder;

/// How long each cell is repeated.
const PATIENCE: Duration = Duration::from_secs(1);

fn main() {
    let gemma = unpacked(include_bytes!("../../../goldens/tokenizer/ggml-vocab-gemma-4.gguf.zst"));
    let smollm2 = unpacked(include_bytes!("../../../goldens/tokenizer/smollm2-vocab.gguf.zst"));
    let (gemma, smollm2) = (gguf::open(gemma.into()), gguf::open(smollm2.into()));
    let (gemma4, smollm2) =
        (gguf::vocab(&gemma).expect("a vocabulary"), gguf::vocab(&smollm2).expect("a vocabulary"));
    let runs: Vec<String> = gemma4.tokens.iter().map(|text| text.replace('▁', " ")).collect();
    let scores: Vec<f32> = (0..gemma4.tokens.len())
        .map(|id| if id < 494 { -1000.0 } else { 494.0 - id as f32 })
        .collect();
    let gemma3 = gemma3(&gemma4, &runs, &scores);

    println!("{:<30} {:>14} {:>14} {:>14}", "", "merges", "scores", "byte level");
    let vocabularies = [&gemma4, &gemma3, &smollm2];
    let load = |vocab: &Vocab<'_>| best(|| Tokenizer::new(vocab).expect("a sound vocabulary"));
    row("loading", vocabularies.map(|vocab| format!("{:.1} ms", load(vocab).as_secs_f64() * 1e3)));
    let tokenizers = vocabularies.map(|vocab| Tokenizer::new(vocab).expect("a sound vocabulary"));
    for corpus::Text { name, text } in corpus::texts(&gemma4.tokens) {
        let speed = |tokenizer: &Tokenizer| {
            let time = best(|| tokenizer.encode(&text, Special::Parse));
            format!("{:.1} MB/s", text.len() as f64 / time.as_secs_f64() / 1e6)
        };
        row(name, tokenizers.each_ref().map(speed));
    }
}

fn gemma3<'a>(gemma4: &Vocab<'a>, runs: &'a [String], scores: &'a [f32]) -> Vocab<'a> {
    let mut vocab = Vocab {
        model: Some("llama"),
        add_space_prefix: Some(false),
        scores: Some(scores),
        merges: Vec::new(),
        ..gemma4.clone()
    };
    for id in 107..168 {
        vocab.tokens[id] = &runs[id];
        vocab.types[id] = 4;
    }
    vocab
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    StreamingDecoder::new(packed)
        .expect("a zstd frame")
        .read_to_end(&mut file)
        .expect("a whole one");
    file
}

fn row(name: &str, [a, b, c]: [String; 3]) {
    println!("{name:<30} {a:>14} {b:>14} {c:>14}");
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
