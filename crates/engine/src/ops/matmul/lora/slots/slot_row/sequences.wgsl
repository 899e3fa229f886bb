// The adapter of a row of the pass: 0 for none, otherwise its slot plus one.
override SEQUENCE_WORDS: u32 = 5u;
override SLOTS: u32 = 1u;
@group(0) @binding(auto) var<storage, read> sequences: array<u32>;

fn adapter_of(row: u32) -> u32 {
    return min(sequences[row * SEQUENCE_WORDS + 3u], SLOTS);
}
