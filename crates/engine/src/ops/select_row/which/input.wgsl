// The row of a given index.
@group(0) @binding(4) var<storage, read> row_index: array<u32>;

fn which() -> u32 {
    return row_index[0];
}
