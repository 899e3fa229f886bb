// A lane takes quads of four rows; the team's sum takes them in.
fn low_sums(rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    let starts = (rows + vec4(p.first_row)) * p.low_stride;
    var sums = vec4(0.0);
    for (var i = lane.index; i < p.low_quads; i += LANES * SPLIT) {
        let z = low_z(i);
        sums += vec4(
            dot(low_quad(low_b[starts.x + i]), z), dot(low_quad(low_b[starts.y + i]), z),
            dot(low_quad(low_b[starts.z + i]), z), dot(low_quad(low_b[starts.w + i]), z),
        );
    }
    return sums;
}

fn low_beside(row: u32, lane: Lane) {}
