// In a batched pass, the matmul that combines partials treats every KV split as live, since rows differ in length: a split without keys has weight 0.
fn write_empty_split(group: vec3<u32>, lane: Lane) {
    if SPLITS == 1u || p.phase == STORE {
        return;
    }
    let rows = rows_of_block(group.y, group.z);
    for (var r = 0u; r < ROWS; r++) {
        if rows.first + r < rows.end {
            let at = row_place(rows, r) * SPLITS + group.x;
            for (var dim4 = lane.team * LANES + lane.index; dim4 < DIM4; dim4 += WG) {
                o[at * DIM4 + dim4] = vec4(0.0);
            }
            if lane.team == 0u && lane.index == 0u {
                o[rows_at() + at] = vec4(MASKED, 0.0, 0.0, 0.0);
            }
        }
    }
}
