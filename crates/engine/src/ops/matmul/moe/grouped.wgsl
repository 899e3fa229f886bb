// y[s, r] = sum over c of W[expert of s, r, c] * x[s or its token, c]     slots s are sorted by expert
// A workgroup computes a tile: rows of one expert for some of its slots. The index of tiles per expert is known only on the device: the grid
// covers the worst case, and surplus workgroups return.
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
    // First slot in sorted order, and index of slots.
    first: u32,
    count: u32,
}

var<workgroup> sh_tile: Tile;
var<workgroup> sh_slots: array<u32, COLUMNS>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = grid_index(group);
    if index / p.tiles >= first_tile(p.experts + 1u, p.slots) {
        return;
    }
    // One lane per expert checks whether the tile belongs to it.
    for (var expert = lane; expert <= p.experts; expert += WG) {
        find_tile(expert, index);
    }
    // A uniform load, so that the compiler knows that all lanes agree.
    let tile = workgroupUniformLoad(&sh_tile);
    if tile.count == 0u {
        return;
    }
    for (var i = lane; i < COLUMNS; i += WG) {
        sh_slots[i] = order[tile.first + min(i, tile.count - 1u)];
    }
    workgroupBarrier();
    if tile.expert == p.experts {
        // Tokens past the count.
        for (var i = lane; i < tile.count * ROWS; i += WG) {
            let row = tile.first_row + i % ROWS;
            if row < p.expert_rows {
                y[sh_slots[i / ROWS] * p.expert_rows + row] = 0.0;
            }
        }
        return;
    }
    compute_tile(tile, lane);
}

// The first tile of an expert whose slots begin at `slot`: each expert before may have one partial tile.
fn first_tile(expert: u32, slot: u32) -> u32 {
    return slot / COLUMNS + expert;
}

// Stores the tile with this index if it belongs to the expert. Its count is zero past the expert's last slot, and if the slab has none of its
// rows; tokens past the count belong to the first slab.
fn find_tile(expert: u32, index: u32) {
    let first = offsets[expert];
    let end = offsets[expert + 1u];
    let tile = index / p.tiles;
    let before = first_tile(expert, first);
    if tile < before || tile >= first_tile(expert + 1u, end) {
        return;
    }
    let first_row = index % p.tiles * ROWS;
    let start = expert * p.expert_rows + first_row;
    let is_in_slab = select(
        overlaps_slab(start, start + min(ROWS, p.expert_rows - first_row)),
        p.slab_first == 0u,
        expert == p.experts,
    );
    let slot = min(first + (tile - before) * COLUMNS, end);
    sh_tile = Tile(expert, first_row, slot, select(0u, min(end - slot, COLUMNS), is_in_slab));
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
