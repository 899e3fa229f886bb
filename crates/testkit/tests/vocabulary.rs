//! Vocabularies read from any bytes take memory in proportion to the bytes. A separate test binary, because the allocator
//! counts all allocations.

mod mutations;

use mutations::{input, seeds};
use peak_alloc::PeakAlloc;
use proptest::{prelude::*, test_runner::TestRunner};
use rullama_gguf::{StringArray, Writer};
use rullama_testkit::entry;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Tables that every tokenizer has: characters, pairs of characters that merge, and the encoded text.
const TABLES: usize = 1 << 20;
/// A byte of text is at most one split of a token: a merge of three ids, the slot of its pair in a hash table that is at
/// most half full and grows by doubling, copies of the list while it grows, and the text itself a few times.
const EACH: usize = 3 * 4 * 3 + 4 * 2 * 2 * 4 + 64;

fn check(data: &[u8]) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    entry::vocabulary(data);
    let peak = MEMORY.peak_usage().saturating_sub(before);
    let bound = TABLES + EACH * data.len();
    assert!(peak <= bound, "{} bytes took {peak}, more than {bound}", data.len());
    peak
}

/// A vocabulary with scores in which every split of every token is a merge: the worst case for a file of its length.
fn runs(longest: usize) -> Vec<u8> {
    let tokens: Vec<String> =
        std::iter::once("<unk>".into()).chain((1..=longest).map(|n| "a".repeat(n))).collect();
    let types: Vec<i32> = (0..tokens.len()).map(|id| if id == 0 { 2 } else { 1 }).collect();
    let texts: StringArray = tokens.iter().map(String::as_str).collect();
    let file = Writer::new()
        .kv("tokenizer.ggml.tokens", texts)
        .kv("tokenizer.ggml.token_type", types)
        .kv("tokenizer.ggml.scores", vec![0.0_f32; tokens.len()])
        .kv("tokenizer.ggml.unknown_token_id", 0u32);
    file.finish().expect("a valid file")
}

/// A single test, so that no other allocates at the same time.
#[test]
fn memory_is_bounded_by_the_file() {
    let worst = seeds("vocabulary").iter().map(|seed| check(seed)).max();
    println!("the seeds take up to {} bytes", worst.expect("there are seeds"));
    let file = runs(400);
    let peak = check(&file);
    println!("the most merges of {} bytes take {peak}", file.len());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(512));
    let result = runner.run(&input("vocabulary"), |data| {
        check(&data);
        Ok(())
    });
    result.expect("every input is bounded");
}
