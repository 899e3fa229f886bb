// y[c, r] = sum over k of W[r, k] * x[c, k]     for 2 to 8 columns; a team of lanes computes two neighbouring rows, whose weights it
// reads once for all columns
//#use weights
//#use quant
//#use x_unit
//#use unit
//#use team

override COLUMNS: u32 = 8u;

struct Params {
//#use slab
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let lanes = LANES * SPLIT;
    let first = (grid_index(group) * (WG / lanes) + lane.team) * 2u;
    // A row past the end is read as the last one and not written.
    let starts = min(vec2(first, first + 1u), vec2(p.rows - 1u)) * p.row_units;
    // Both rows of columns 0 to 3, and of 4 to 7.
    var low = mat4x2<f32>();
    var high = mat4x2<f32>();
    for (var unit = lane.index; unit < p.row_units; unit += lanes) {
        let a = load_unit(starts.x + unit);
        let b = load_unit(starts.y + unit);
        low += mat4x2<f32>(both(a, b, 0u, unit), both(a, b, 1u, unit), both(a, b, 2u, unit), both(a, b, 3u, unit));
        if COLUMNS > 4u {
            high += mat4x2<f32>(both(a, b, 4u, unit), both(a, b, 5u, unit), both(a, b, 6u, unit), both(a, b, 7u, unit));
        }
    }
    store(first, 0u, team_sum4(vec4(low[0], low[1]), lane), lane);
    store(first, 2u, team_sum4(vec4(low[2], low[3]), lane), lane);
    if COLUMNS > 4u {
        store(first, 4u, team_sum4(vec4(high[0], high[1]), lane), lane);
        store(first, 6u, team_sum4(vec4(high[2], high[3]), lane), lane);
    }
}

fn both(a: array<vec4<f32>, 8>, b: array<vec4<f32>, 8>, column: u32, unit: u32) -> vec2<f32> {
    if column >= COLUMNS {
        return vec2(0.0);
    }
    let x = x_unit(column, unit);
    return vec2(unit_dot(a, x), unit_dot(b, x));
}

// Two rows of two columns.
fn store(first: u32, column: u32, sums: vec4<f32>, lane: Lane) {
    for (var i = lane.index; i < 4u; i += LANES * SPLIT) {
        let c = column + i / 2u;
        let r = first + i % 2u;
        if c < COLUMNS && r < p.rows {
            y[c * p.all_rows + p.first_row + r] = sums[i];
        }
    }
}
