// y[r] = sum over k of W[r, k] * x[k]     a team of lanes makes ROWS neighbouring rows, which share what it reads of x
//#use weights
//#use quant
//#use columns
//#use unit
//#use team

// One, two or four.
override ROWS: u32 = 4u;

struct Params {
    plane0: u32,
    plane1: u32,
    plane2: u32,
    plane3: u32,
    width: u32,
    row_units: u32,
    rows: u32,
    first_row: u32,
    all_rows: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let lanes = LANES * SPLIT;
    let first = (grid_index(group) * (WG / lanes) + lane.team) * ROWS;
    // Rows behind the end are read as the last one and not written.
    let starts = min(vec4(first) + vec4(0u, 1u, 2u, 3u), vec4(p.rows - 1u)) * p.row_units;
    var sums = vec4(0.0);
    for (var unit = lane.index; unit < p.row_units; unit += lanes) {
        let x = x_unit(0u, unit);
        sums.x += unit_dot(load_unit(starts.x + unit), x);
        if ROWS > 1u {
            sums.y += unit_dot(load_unit(starts.y + unit), x);
        }
        if ROWS > 2u {
            sums.z += unit_dot(load_unit(starts.z + unit), x);
            sums.w += unit_dot(load_unit(starts.w + unit), x);
        }
    }
    let results = team_sum4(sums, lane);
    for (var r = lane.index; r < ROWS; r += lanes) {
        if first + r < p.rows {
            y[p.first_row + first + r] = results[r];
        }
    }
}
