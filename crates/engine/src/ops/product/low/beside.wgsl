// A x is made beside W x, by workgroups of its own, and lies behind it in the result.
//#use factor
//#use stream
//#use beside_x
@group(0) @binding(5) var<storage, read> low_a: array<LowQuad>;

fn make_low(lane: Lane) {}

fn low_sums(rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    return vec4(0.0);
}

fn low_beside(row: u32, lane: Lane) {
    if row >= p.low_quads {
        stream_beside(row - p.low_quads, lane);
        return;
    }
    let quads = p.width / 4u;
    var sum = 0.0;
    // Four at a time are asked for at once: loops wait for memory in every turn.
    for (var i = lane.part * LANES + lane.in_part; i < quads; i += WG * 4u) {
        sum += (beside_at(row, i) + beside_at(row, i + WG)) + (beside_at(row, i + WG * 2u) + beside_at(row, i + WG * 3u));
    }
    sum = group_sum(sum, lane);
    if lane.part + lane.in_part == 0u && row < p.low_quads {
        y[p.y_width + row] = sum;
    }
}

fn beside_at(row: u32, i: u32) -> f32 {
    let last = p.width / 4u - 1u;
    let quad = min(i, last);
    let product = dot(low_quad(low_a[min(row, p.low_quads - 1u) * p.low_stride + quad]), beside_x(quad));
    return select(0.0, product, i <= last);
}
