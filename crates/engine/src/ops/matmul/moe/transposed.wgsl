// dx[i, c] = sum over the slots s that share row i, and over r, of W[ids[s], r, c] * dy[s, r]
// A workgroup computes TILE_UNITS units of one row of dx; the lanes of a unit take rows r in turn and reduce at the end. The first slab
// writes, the others add.
//#use params
//#use weights
//#use quant

const WG: u32 = 256u;
const TILE_UNITS: u32 = 8u;
const ROW_LANES: u32 = 32u;

@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;
@group(0) @binding(5) var<storage, read> ids: array<u32>;

var<workgroup> sh_sums: array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let index_in_grid = grid_index(group);
    let out_row = index_in_grid / p.tiles;
    let first_slot = out_row * p.slots_per_column;
    if first_slot >= p.slots {
        return;
    }
    let unit = index_in_grid % p.tiles * TILE_UNITS + index % TILE_UNITS;
    let clamped_unit = min(unit, p.row_units - 1u);
    var s0 = vec4(0.0);
    var s1 = vec4(0.0);
    var s2 = vec4(0.0);
    var s3 = vec4(0.0);
    var s4 = vec4(0.0);
    var s5 = vec4(0.0);
    var s6 = vec4(0.0);
    var s7 = vec4(0.0);
    let live = run.count * p.chosen;
    for (var slot = first_slot; slot < min(first_slot + p.slots_per_column, live); slot++) {
        let expert = ids[slot] * p.expert_rows;
        let first = max(expert, p.slab_first);
        let end = min(expert + p.expert_rows, p.slab_first + p.slab_rows);
        for (var row = first + index / TILE_UNITS; row < end; row += ROW_LANES) {
            let weights = load_unit(row_start(row) + clamped_unit);
            let slope = dy[slot * p.expert_rows + row - expert];
            s0 += weights[0] * slope;
            s1 += weights[1] * slope;
            s2 += weights[2] * slope;
            s3 += weights[3] * slope;
            s4 += weights[4] * slope;
            s5 += weights[5] * slope;
            s6 += weights[6] * slope;
            s7 += weights[7] * slope;
        }
    }
    store(s0, index, out_row, unit, 0u);
    store(s1, index, out_row, unit, 1u);
    store(s2, index, out_row, unit, 2u);
    store(s3, index, out_row, unit, 3u);
    store(s4, index, out_row, unit, 4u);
    store(s5, index, out_row, unit, 5u);
    store(s6, index, out_row, unit, 6u);
    store(s7, index, out_row, unit, 7u);
}

// Reduces a vec4 of columns over the lanes of a unit.
fn store(part: vec4<f32>, index: u32, out_row: u32, unit: u32, g: u32) {
    sh_sums[index] = part;
    workgroupBarrier();
    for (var step = ROW_LANES / 2u; step > 0u; step /= 2u) {
        if index < step * TILE_UNITS {
            sh_sums[index] += sh_sums[index + step * TILE_UNITS];
        }
        workgroupBarrier();
    }
    if index < TILE_UNITS && unit < p.row_units {
        let sum = sh_sums[index];
        let column = unit_column(unit, g);
        for (var i = 0u; i < 4u; i++) {
            if column + i < p.width {
                let at = out_row * p.width + column + i;
                if p.slab_first == 0u {
                    dx[at] = sum[i];
                } else {
                    dx[at] += sum[i];
                }
            }
        }
    }
    // The next vec4 uses the same memory.
    workgroupBarrier();
}
