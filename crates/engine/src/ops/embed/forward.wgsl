// y[t, :] = scale * W[ids[t], :]     one workgroup per id; each slab writes the rows it holds, the first one also zeros for ids beyond all rows
//#use weights
//#use quant

const WG: u32 = 64u;

struct Params {
//#use slab
    scale: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(3) var<storage, read> ids: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let t = grid_index(group);
    if t >= p.count {
        return;
    }
    let id = ids[t];
    if id >= p.all_rows {
        if p.first_row == 0u {
            for (var k = lane; k < p.width; k += WG) {
                y[t * p.width + k] = 0.0;
            }
        }
        return;
    }
    if id < p.first_row || id - p.first_row >= p.rows {
        return;
    }
    for (var unit = lane; unit < p.row_units; unit += WG) {
        let weights = load_unit((id - p.first_row) * p.row_units + unit);
        store4(t, unit_column(unit, 0u), weights[0]);
        store4(t, unit_column(unit, 1u), weights[1]);
        store4(t, unit_column(unit, 2u), weights[2]);
        store4(t, unit_column(unit, 3u), weights[3]);
        store4(t, unit_column(unit, 4u), weights[4]);
        store4(t, unit_column(unit, 5u), weights[5]);
        store4(t, unit_column(unit, 6u), weights[6]);
        store4(t, unit_column(unit, 7u), weights[7]);
    }
}

// Rows of plain floats may end inside a vec4.
fn store4(t: u32, k: u32, weights: vec4<f32>) {
    let at = t * p.width + k;
    let values = weights * p.scale;
    if k < p.width {
        y[at] = values.x;
    }
    if k + 1u < p.width {
        y[at + 1u] = values.y;
    }
    if k + 2u < p.width {
        y[at + 2u] = values.z;
    }
    if k + 3u < p.width {
        y[at + 3u] = values.w;
    }
}
