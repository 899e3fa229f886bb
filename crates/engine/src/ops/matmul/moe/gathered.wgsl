// y[s, r] = sum over c of W[ids[s], r, c] * x[s or its token, c]     a workgroup computes rows of one slot s, one team of lanes per row
//#use params
//#use weights
//#use quant
//#use x_unit
//#use unit
//#use team

@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> ids: array<u32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let index = grid_index(group);
    let slot = index / p.tiles;
    if slot >= p.slots {
        return;
    }
    let first = index % p.tiles * (WG / LANES);
    let row = first + lane.team;
    let writes_row = lane.index == 0u && row < p.expert_rows;
    if slot / p.chosen >= run.count {
        if writes_row && p.slab_first == 0u {
            y[slot * p.expert_rows + row] = 0.0;
        }
        return;
    }
    let expert = ids[slot] * p.expert_rows;
    if !overlaps_slab(expert + first, expert + min(first + WG / LANES, p.expert_rows)) {
        return;
    }
    let start = row_start(expert + row);
    let column = slot / p.slots_per_column;
    var sum = 0.0;
    for (var unit = lane.index; unit < p.row_units; unit += LANES) {
        sum += unit_dot(load_unit(start + unit), x_unit(column, unit));
    }
    sum = team_sum(sum, lane);
    if writes_row && in_slab(expert + row) {
        y[slot * p.expert_rows + row] = sum;
    }
}
