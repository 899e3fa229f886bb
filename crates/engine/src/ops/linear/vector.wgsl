// y[c, r] = sum over k of W[r, k] * x[c, k]     for COLUMNS columns; a team of lanes makes ROWS rows
//#use weights
//#use quant
//#use columns
//#use dot
//#use team

override COLUMNS: u32 = 1u;
override ROWS: u32 = 1u;
// Local arrays cannot be sized by an override; at most four rows of eight columns are used.
const MOST_SUMS: u32 = 32u;

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
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let first = (grid_index(group) * (WG / LANES) + lane.team) * ROWS;
    var sums: array<f32, MOST_SUMS>;
    for (var i = 0u; i < ROWS * COLUMNS; i++) {
        sums[i] = 0.0;
    }
    for (var unit = lane.index; unit < p.row_units; unit += LANES) {
        for (var r = 0u; r < ROWS; r++) {
            // Rows behind the end are read as the last one and not written.
            let weights = load_unit(min(first + r, p.rows - 1u) * p.row_units + unit);
            for (var c = 0u; c < COLUMNS; c++) {
                sums[r * COLUMNS + c] += unit_dot(weights, unit, c);
            }
        }
    }
    for (var r = 0u; r < ROWS; r++) {
        for (var c = 0u; c < COLUMNS; c++) {
            let sum = team_sum(sums[r * COLUMNS + c], lane);
            if lane.index == 0u && first + r < p.rows {
                y[c * p.all_rows + p.first_row + first + r] = sum;
            }
        }
    }
}
