// Rows of the weight are rows of a register tile: a slice is one unit of each. A lane loads the same groups of four rows and transposes
// them. The kernel defines the first unit of a row, row_units_at(tile, row).
//#use columns

// A quarter of a unit is groups 2i and 2i + 1: the first belongs to half 0, the second to half 1.
fn group_of(q: RawPair, half: u32) -> vec4<f32> {
    if half == 0u {
        return numbers(q.first);
    }
    return numbers(q.second);
}

// A quarter of the unit of each of four rows.
struct LoadedWeights {
    w0: RawPair,
    w1: RawPair,
    w2: RawPair,
    w3: RawPair,
}

// The slices of a tile, as a half-open range.
fn slices(tile: Tile) -> vec2<u32> {
    return vec2(0u, p.row_units);
}

// Row i of a vec4 of rows. The vec4s of adjacent lanes have adjacent rows, so that lanes store adjacent outputs.
fn row_of(four: u32, i: u32) -> u32 {
    return four / ROW_LANES * ROW_LANES * 4u + i * ROW_LANES + four % ROW_LANES;
}

fn weights_start(tile: Tile, lane: u32) -> vec4<u32> {
    let four = lane_vec4(lane);
    return vec4(
        row_units_at(tile, row_of(four, 0u)), row_units_at(tile, row_of(four, 1u)),
        row_units_at(tile, row_of(four, 2u)), row_units_at(tile, row_of(four, 3u)),
    );
}

fn load_slice(start: vec4<u32>, slice: u32, lane: u32) -> LoadedWeights {
    let part = lane_part(lane);
    return LoadedWeights(
        raw_pair_at(start.x + slice, part), raw_pair_at(start.y + slice, part),
        raw_pair_at(start.z + slice, part), raw_pair_at(start.w + slice, part),
    );
}

fn stage_weights(weights: LoadedWeights, half: u32, lane: u32) {
    let q = lane_vec4(lane) / ROW_LANES;
    let l = lane_vec4(lane) % ROW_LANES;
    let part = lane_part(lane);
    let r0 = group_of(weights.w0, half);
    let r1 = group_of(weights.w1, half);
    let r2 = group_of(weights.w2, half);
    let r3 = group_of(weights.w3, half);
    sh_w[q][part * 4u][l] = vec4(r0.x, r1.x, r2.x, r3.x);
    sh_w[q][part * 4u + 1u][l] = vec4(r0.y, r1.y, r2.y, r3.y);
    sh_w[q][part * 4u + 2u][l] = vec4(r0.z, r1.z, r2.z, r3.z);
    sh_w[q][part * 4u + 3u][l] = vec4(r0.w, r1.w, r2.w, r3.w);
}

// The four elements of a column that the group of a quarter in this half is multiplied with.
fn column4(column: u32, slice: u32, part: u32, half: u32) -> vec4<f32> {
    return x4(column, unit_column(slice, part * 2u + half));
}
