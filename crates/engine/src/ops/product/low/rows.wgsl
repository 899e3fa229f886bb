// A lane takes quads of four rows; the team's sum takes them in.
fn low_sums(rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    let starts = (rows + vec4(p.first_row)) * p.low_stride;
    var sums = vec4(0.0);
    for (var i = lane.index; i < p.low_quads; i += LANES * SPLIT) {
        let z = low_z(i);
        sums.x += dot(low_quad(low_b[starts.x + i]), z);
        if ROWS > 1u {
            sums.y += dot(low_quad(low_b[starts.y + i]), z);
        }
        if ROWS > 2u {
            sums.z += dot(low_quad(low_b[starts.z + i]), z);
            sums.w += dot(low_quad(low_b[starts.w + i]), z);
        }
    }
    return sums;
}

fn low_beside(row: u32, lane: Lane) {}
