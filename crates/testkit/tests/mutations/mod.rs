//! Seeds of the fuzzers, and mutations of them.

use std::{path::Path, sync::LazyLock};

use proptest::{prelude::*, sample::Index};
use rullama_testkit::entry;

/// The seeds of a target.
struct Seeds {
    target: &'static str,
    files: Vec<Vec<u8>>,
}

/// The files of `fuzz/corpus`.
static SEEDS: LazyLock<Vec<Seeds>> = LazyLock::new(|| {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let read = |target: &'static str| {
        let folder = std::fs::read_dir(corpus.join(target)).expect("every target has seeds");
        let files = folder.map(|file| file.and_then(|file| std::fs::read(file.path())));
        Seeds { target, files: files.map(|file| file.expect("a seed can be read")).collect() }
    };
    entry::ALL.iter().map(|(target, _)| read(target)).collect()
});

/// The seeds of a target.
pub(crate) fn seeds(target: &str) -> &'static [Vec<u8>] {
    &SEEDS.iter().find(|seeds| seeds.target == target).expect("a known target").files
}

/// A small change of a seed.
#[derive(Debug, Clone)]
enum Mutation {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, u8),
    Repeat(Index, u8),
    /// Overwrites eight bytes with a small or large number.
    Number(Index, u64),
    Cut(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        2 => (at(), token()).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        2 => (at(), any::<u8>()).prop_map(|(at, count)| Mutation::Remove(at, count)),
        2 => (at(), any::<u8>()).prop_map(|(at, count)| Mutation::Repeat(at, count)),
        2 => (at(), any::<u64>(), 0..64u32).prop_map(|(at, n, shift)| Mutation::Number(at, n >> shift)),
        1 => at().prop_map(Mutation::Cut),
    ]
}

/// Tokens that are likely to break parsers.
const WORDS: &str = r#"<|turn> <turn|> <|channel> <channel|> thought <|tool_call> <tool_call|> call:look{ <|"|>
    <|tool_response> { } [ ] : , " null 1e999 ▁ 🦙 {{ }} {% %} {# - for in endfor if endif macro +a 1a u0"#;

fn token() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&str> = WORDS.split_whitespace().chain(["\n", " "]).collect();
    prop_oneof![
        prop::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..6),
    ]
}

fn apply(data: &mut Vec<u8>, mutation: &Mutation) {
    let index = |at: &Index| at.index(data.len() + 1);
    match mutation {
        Mutation::Replace(at, byte) => {
            let at = index(at);
            if let Some(slot) = data.get_mut(at) {
                *slot = *byte;
            }
        }
        Mutation::Insert(at, bytes) => {
            let at = index(at);
            data.splice(at..at, bytes.iter().copied());
        }
        Mutation::Remove(at, count) => {
            let at = index(at);
            let end = data.len().min(at + usize::from(*count));
            data.drain(at..end);
        }
        Mutation::Repeat(at, count) => {
            let at = index(at);
            let end = data.len().min(at + usize::from(*count));
            data.splice(at..at, data[at..end].to_vec());
        }
        Mutation::Number(at, number) => {
            let at = index(at);
            for (slot, byte) in data[at..].iter_mut().zip(number.to_le_bytes()) {
                *slot = byte;
            }
        }
        Mutation::Cut(at) => {
            let at = index(at);
            data.truncate(at);
        }
    }
}

/// Any bytes, and seeds with a few mutations.
pub(crate) fn input(target: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let mutated = (prop::sample::select(seeds(target)), prop::collection::vec(mutation(), 1..4));
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..400),
        6 => mutated.prop_map(|(mut data, mutations)| {
            mutations.iter().for_each(|mutation| apply(&mut data, mutation));
            data
        }),
    ]
}
