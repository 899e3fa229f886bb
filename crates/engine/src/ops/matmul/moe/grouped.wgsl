// y[s, r] = sum over c of W[expert of s, r, c] * x[s or its token, c]     slots s come sorted by expert
// A workgroup computes a tile: rows of one expert for some of its slots. The number of tiles of an expert is only known here: the grid is
// for the worst case, surplus workgroups return.
//#use params
//#use weights
//#use quant
//#use tile

@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> order: array<u32>;
@group(0) @binding(6) var<storage, read> offsets: array<u32>;

struct Tile {
    expert: u32,
    first_row: u32,
    // Slots, in their order.
    first: u32,
    count: u32,
}

var<workgroup> sh_tile: Tile;
var<workgroup> sh_slots: array<u32, COLUMNS>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = grid_index(group);
    if number / p.tiles >= first_tile(p.experts + 1u, p.slots) {
        return;
    }
    // The expert that a tile belongs to finds itself.
    for (var expert = lane; expert <= p.experts; expert += WG) {
        find_tile(expert, number);
    }
    // A uniform load, so that compilers know that all lanes agree.
    let tile = workgroupUniformLoad(&sh_tile);
    if tile.count == 0u {
        return;
    }
    for (var i = lane; i < COLUMNS; i += WG) {
        sh_slots[i] = order[tile.first + min(i, tile.count - 1u)];
    }
    workgroupBarrier();
    if tile.expert == p.experts {
        // Tokens that are not live.
        for (var i = lane; i < tile.count * ROWS; i += WG) {
            let row = tile.first_row + i % ROWS;
            if row < p.expert_rows {
                y[sh_slots[i / ROWS] * p.expert_rows + row] = 0.0;
            }
        }
        return;
    }
    make_tile(tile, lane);
}

// An expert's first tile of slots, where its slots begin at `slot`: experts before have one for each part of their slots that is not full.
fn first_tile(expert: u32, slot: u32) -> u32 {
    return slot / COLUMNS + expert;
}

// The tile with this number, if it is one of the expert's. It has no slots after the expert's last one, and where the slab has nothing of
// it; tokens that are not live belong to the first slab.
fn find_tile(expert: u32, number: u32) {
    let first = offsets[expert];
    let end = offsets[expert + 1u];
    let tile = number / p.tiles;
    let before = first_tile(expert, first);
    if tile < before || tile >= first_tile(expert + 1u, end) {
        return;
    }
    let first_row = number % p.tiles * ROWS;
    let start = expert * p.expert_rows + first_row;
    let ours = select(
        meets_slab(start, start + min(ROWS, p.expert_rows - first_row)),
        p.slab_first == 0u,
        expert == p.experts,
    );
    let slot = min(first + (tile - before) * COLUMNS, end);
    sh_tile = Tile(expert, first_row, slot, select(0u, min(end - slot, COLUMNS), ours));
}

fn row_units_at(tile: Tile, row: u32) -> u32 {
    return row_start(tile.expert * p.expert_rows + min(tile.first_row + row, p.expert_rows - 1u));
}

fn column_at(tile: Tile, column: u32) -> u32 {
    return sh_slots[column] / p.slots_per_column;
}

fn store(tile: Tile, row: u32, column: u32, sum: f32) {
    let r = tile.first_row + row;
    if column < tile.count && r < p.expert_rows && in_slab(tile.expert * p.expert_rows + r) {
        y[sh_slots[column] * p.expert_rows + r] = sum;
    }
}
