// A pass over sequences whose keys and values are in the pages of a KV pool: rows of different sequences, or all of one.
struct Step {
    position: u32,
    count: u32,
    seed: u32,
    reserved: u32,
}

@group(0) @binding(1) var<uniform> run: Step;
@group(0) @binding(auto) var<storage, read> sequences: array<u32>;

// Words of a sequence in `sequences`: position, seed, slot of the latest token, a reserved one, then its block table.
override SEQUENCE_WORDS: u32 = 5u;
// Tokens of a page.
override PAGE: u32 = 64u;
// 1 where all rows are of one sequence, at consecutive positions from the step's on.
override ONE_SEQUENCE: u32 = 0u;
const SEQUENCE_HEADER: u32 = 4u;

// The step as a pass of the row's sequence alone would have it: `position + row` is the row's position.
fn row_step(row: u32) -> Step {
    if ONE_SEQUENCE == 1u {
        return run;
    }
    let at = row * SEQUENCE_WORDS;
    // Wraps around, and back where the row is added.
    return Step(sequences[at] - row, run.count, sequences[at + 1u], 0u);
}

// The slot of the latest token of the row's sequence.
fn token_slot(row: u32) -> u32 {
    return sequences[row * SEQUENCE_WORDS + 2u];
}

// Where the block table starts that paged_slot reads. Only addresses depend on it, never control flow, which has to be uniform.
var<private> block_table: u32;

fn enter_row(row: u32) {
    block_table = select(row, 0u, ONE_SEQUENCE == 1u) * SEQUENCE_WORDS + SEQUENCE_HEADER;
}

// The slot of the KV pool that holds a position of the sequence; a block table shorter than the sequence is a ring.
fn paged_slot(key: u32) -> u32 {
    let entry = key / PAGE % (SEQUENCE_WORDS - SEQUENCE_HEADER);
    return sequences[block_table + entry] * PAGE + key % PAGE;
}
