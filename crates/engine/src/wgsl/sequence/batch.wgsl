// A pass over sequences with paged KV caches in a KV pool: rows of different sequences, or all rows of one sequence.
struct Step {
    position: u32,
    count: u32,
    seed: u32,
    reserved: u32,
}

@group(0) @binding(1) var<uniform> run: Step;
@group(0) @binding(auto) var<storage, read> sequences: array<u32>;

// Layout of a sequence in `sequences`, in words: position, seed, slot of the latest token, adapter, then its block table.
override SEQUENCE_WORDS: u32 = 5u;
// Tokens per page.
override PAGE: u32 = 64u;
// 1 if all rows belong to one sequence, at consecutive positions from the step's position.
override ONE_SEQUENCE: u32 = 0u;
const SEQUENCE_HEADER: u32 = 4u;

// The step of the row's sequence in a pass of its own: `position + row` is the row's position.
fn row_step(row: u32) -> Step {
    if ONE_SEQUENCE == 1u {
        return run;
    }
    let at = row * SEQUENCE_WORDS;
    // Wraps around, and back when the row is added.
    return Step(sequences[at] - row, run.count, sequences[at + 1u], 0u);
}

// The slot of the latest token of the row's sequence.
fn token_slot(row: u32) -> u32 {
    return sequences[row * SEQUENCE_WORDS + 2u];
}

// The start of the block table that paged_slot reads. Only addresses depend on it, never control flow, which must be uniform.
var<private> block_table: u32;

fn enter_row(row: u32) {
    block_table = select(row, 0u, ONE_SEQUENCE == 1u) * SEQUENCE_WORDS + SEQUENCE_HEADER;
}

// The KV pool slot of a sequence's position; a block table shorter than the sequence is a ring buffer.
fn paged_slot(key: u32) -> u32 {
    let entry = key / PAGE % (SEQUENCE_WORDS - SEQUENCE_HEADER);
    return sequences[block_table + entry] * PAGE + key % PAGE;
}
