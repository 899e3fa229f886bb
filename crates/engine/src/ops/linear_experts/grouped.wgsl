// y[s, r] = sum over c of W[expert of s, r, c] * x[s or its token, c]     slots s come sorted by expert
// A workgroup makes TILE_ROWS rows of one expert for up to TILE_SLOTS of its slots, a unit of 32 columns at a time; a lane makes
// four rows of LANE_SLOTS slots. How many tiles an expert has is known here only: the grid is for the worst case, the rest leaves.
//#use params
//#use weights
//#use quant
//#use columns

const WG: u32 = 64u;
const TILE_ROWS: u32 = 64u;
const ROW_LANES: u32 = 16u;
const SLOT_LANES: u32 = 4u;
// Two or eight.
override LANE_SLOTS: u32 = 8u;
override TILE_SLOTS: u32 = LANE_SLOTS * SLOT_LANES;
// One more than the slots, so that lanes that fill one slot do not meet in a memory bank.
override X_STRIDE: u32 = TILE_SLOTS + 1u;

@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> order: array<u32>;
@group(0) @binding(6) var<storage, read> offsets: array<u32>;

// Four columns each: by group of four, then by row or slot.
var<workgroup> sh_w: array<vec4<f32>, 8u * TILE_ROWS>;
var<workgroup> sh_x: array<vec4<f32>, 8u * X_STRIDE>;
var<workgroup> sh_slots: array<u32, TILE_SLOTS>;

struct Tile {
    expert: u32,
    first: u32,
    count: u32,
}

// The tile of slots with this number; its count is zero behind the last one.
fn find_tile(number: u32) -> Tile {
    var left = number;
    for (var expert = 0u; expert <= p.experts; expert++) {
        let first = offsets[expert];
        let count = offsets[expert + 1u] - first;
        let tiles = (count + TILE_SLOTS - 1u) / TILE_SLOTS;
        if left < tiles {
            let skipped = left * TILE_SLOTS;
            return Tile(expert, first + skipped, min(count - skipped, TILE_SLOTS));
        }
        left -= tiles;
    }
    return Tile(0u, 0u, 0u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let number = grid_index(group);
    let tile = find_tile(number / p.tiles);
    let first_row = number % p.tiles * TILE_ROWS;
    if tile.count == 0u {
        return;
    }
    if index < TILE_SLOTS {
        sh_slots[index] = order[tile.first + min(index, tile.count - 1u)];
    }
    workgroupBarrier();
    let rows = min(TILE_ROWS, p.expert_rows - first_row);
    if tile.expert == p.experts {
        // Tokens that are not live.
        for (var i = 0u; i < tile.count; i++) {
            if index < rows && p.slab_first == 0u {
                y[sh_slots[i] * p.expert_rows + first_row + index] = 0.0;
            }
        }
        return;
    }
    let expert_row = tile.expert * p.expert_rows + first_row;
    if !meets_slab(expert_row, expert_row + rows) {
        return;
    }
    let row = index % ROW_LANES;
    let slot = index / ROW_LANES;
    var s0 = vec4(0.0);
    var s1 = vec4(0.0);
    var s2 = vec4(0.0);
    var s3 = vec4(0.0);
    var s4 = vec4(0.0);
    var s5 = vec4(0.0);
    var s6 = vec4(0.0);
    var s7 = vec4(0.0);
    let start = row_start(expert_row + min(index, rows - 1u));
    for (var unit = 0u; unit < p.row_units; unit++) {
        fill_w(load_unit(start + unit), index);
        fill_x(unit, index);
        workgroupBarrier();
        for (var g = 0u; g < 8u; g++) {
            let at = g * TILE_ROWS + row;
            let w0 = sh_w[at];
            let w1 = sh_w[at + ROW_LANES];
            let w2 = sh_w[at + 2u * ROW_LANES];
            let w3 = sh_w[at + 3u * ROW_LANES];
            let x_at = g * X_STRIDE + slot;
            s0 += dots(w0, w1, w2, w3, sh_x[x_at]);
            s1 += dots(w0, w1, w2, w3, sh_x[x_at + SLOT_LANES]);
            if LANE_SLOTS > 2u {
                s2 += dots(w0, w1, w2, w3, sh_x[x_at + 2u * SLOT_LANES]);
                s3 += dots(w0, w1, w2, w3, sh_x[x_at + 3u * SLOT_LANES]);
                s4 += dots(w0, w1, w2, w3, sh_x[x_at + 4u * SLOT_LANES]);
                s5 += dots(w0, w1, w2, w3, sh_x[x_at + 5u * SLOT_LANES]);
                s6 += dots(w0, w1, w2, w3, sh_x[x_at + 6u * SLOT_LANES]);
                s7 += dots(w0, w1, w2, w3, sh_x[x_at + 7u * SLOT_LANES]);
            }
        }
        // The next unit goes to the same memory.
        workgroupBarrier();
    }
    store(s0, tile, slot, first_row, row);
    store(s1, tile, slot + SLOT_LANES, first_row, row);
    if LANE_SLOTS > 2u {
        store(s2, tile, slot + 2u * SLOT_LANES, first_row, row);
        store(s3, tile, slot + 3u * SLOT_LANES, first_row, row);
        store(s4, tile, slot + 4u * SLOT_LANES, first_row, row);
        store(s5, tile, slot + 5u * SLOT_LANES, first_row, row);
        store(s6, tile, slot + 6u * SLOT_LANES, first_row, row);
        store(s7, tile, slot + 7u * SLOT_LANES, first_row, row);
    }
}

fn fill_w(weights: array<vec4<f32>, 8>, row: u32) {
    sh_w[row] = weights[0];
    sh_w[TILE_ROWS + row] = weights[1];
    sh_w[2u * TILE_ROWS + row] = weights[2];
    sh_w[3u * TILE_ROWS + row] = weights[3];
    sh_w[4u * TILE_ROWS + row] = weights[4];
    sh_w[5u * TILE_ROWS + row] = weights[5];
    sh_w[6u * TILE_ROWS + row] = weights[6];
    sh_w[7u * TILE_ROWS + row] = weights[7];
}

// Eight neighbouring lanes read the unit of one slot.
fn fill_x(unit: u32, index: u32) {
    let g = index % 8u;
    let k = unit_column(unit, g);
    for (var slot = index / 8u; slot < TILE_SLOTS; slot += WG / 8u) {
        sh_x[g * X_STRIDE + slot] = x4(sh_slots[slot] / p.slots_per_column, k);
    }
}

fn dots(w0: vec4<f32>, w1: vec4<f32>, w2: vec4<f32>, w3: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
    return vec4(dot(w0, x), dot(w1, x), dot(w2, x), dot(w3, x));
}

// Four rows, ROW_LANES apart, of one slot of the tile.
fn store(sums: vec4<f32>, tile: Tile, slot: u32, first_row: u32, row: u32) {
    if slot < tile.count {
        let at = sh_slots[slot] * p.expert_rows;
        store_row(sums.x, tile.expert, at, first_row + row);
        store_row(sums.y, tile.expert, at, first_row + row + ROW_LANES);
        store_row(sums.z, tile.expert, at, first_row + row + 2u * ROW_LANES);
        store_row(sums.w, tile.expert, at, first_row + row + 3u * ROW_LANES);
    }
}

fn store_row(sum: f32, expert: u32, at: u32, row: u32) {
    if row < p.expert_rows && in_slab(expert * p.expert_rows + row) {
        y[at + row] = sum;
    }
}
