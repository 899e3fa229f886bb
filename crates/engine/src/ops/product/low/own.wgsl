// y[r] += sum over i of B[r, i] * z[i],  z = A x: every workgroup makes z for itself
//#use factor
//#use spot
alias LowFirst = LowQuad;
override RANK: u32 = 16u;

var<workgroup> sh_low: array<vec4<f32>, WG>;
var<workgroup> sh_z: array<f32, RANK>;

// After the last write to x. Four rows of A are shared by as many lanes as there are, neighbours beside each other.
fn make_low(lane: Lane) {
    workgroupBarrier();
    let index = lane.part * LANES + lane.in_part;
    let sharing = WG / p.low_quads;
    let four = index / sharing;
    if four < p.low_quads {
        let stride = p.width / 4u;
        let first = four * 4u * stride;
        var sums = vec4(0.0);
        for (var i = index % sharing; i < stride; i += sharing) {
            let x = x_quad(i);
            let at = first + x_column(i) / 4u;
            sums += vec4(
                dot(low_quad(low_first[at]), x), dot(low_quad(low_first[at + stride]), x),
                dot(low_quad(low_first[at + stride * 2u]), x), dot(low_quad(low_first[at + stride * 3u]), x),
            );
        }
        sh_low[index] = sums;
    }
    workgroupBarrier();
    for (var row = index; row < p.low_quads * 4u; row += WG) {
        var sum = 0.0;
        for (var i = 0u; i < sharing; i++) {
            sum += sh_low[row / 4u * sharing + i][row % 4u];
        }
        sh_z[row] = sum;
    }
    workgroupBarrier();
}

fn low_z(i: u32) -> vec4<f32> {
    return vec4(sh_z[i * 4u], sh_z[i * 4u + 1u], sh_z[i * 4u + 2u], sh_z[i * 4u + 3u]);
}

//#use low_rows
