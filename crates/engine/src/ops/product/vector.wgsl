// y[r] = sum over k of W[r, k] * x[k]     a team of lanes makes ROWS rows at a time, which share what it reads of x
//#use weights
//#use quant
//#use unit
//#use team
//#use begin
//#use finish

// One, two or four; an end that takes two rows for a result needs two at least.
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
    // Workgroups take turns: how many turns there are in all, and how many workgroups.
    turns: u32,
    groups: u32,
    // Of the norms in front.
    eps: f32,
    scaled: u32,
    // Where the slice behind the product starts.
    offset: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    begin(group, lane);
    let lanes = LANES * SPLIT;
    for (var turn = grid_index(group); turn < p.turns; turn += p.groups) {
        let first = (turn * (WG / lanes) + lane.team) * results();
        // Rows behind the end are read as the last one and not written.
        let rows = vec4(row_of(first, 0u), row_of(first, 1u), row_of(first, 2u), row_of(first, 3u));
        let starts = min(rows, vec4(p.rows - 1u)) * p.row_units;
        var sums = vec4(0.0);
        for (var unit = lane.index; unit < p.row_units; unit += lanes) {
            let column = column_at(unit);
            sums.x += unit_sum(starts.x + unit, column);
            if ROWS > 1u {
                sums.y += unit_sum(starts.y + unit, column);
            }
            if ROWS > 2u {
                sums.z += unit_sum(starts.z + unit, column);
                sums.w += unit_sum(starts.w + unit, column);
            }
        }
        let made = team_sum4(sums, lane);
        for (var i = lane.index; i < results(); i += lanes) {
            finish(first + i, i, made);
        }
    }
}
