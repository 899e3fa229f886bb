// P h is made too, of the residual stream h, and lies after A x.
override STREAM_ROWS: u32 = 16u;
override STREAM_QUADS: u32 = 384u;
// As of A x.
override STREAM_EACH: u32 = 4u;
@group(0) @binding(6) var<storage, read> stream_h: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> stream_p: array<LowQuad>;

fn stream_beside(row: u32, lane: Lane) {
    var sum = 0.0;
    for (var i = lane.part * LANES + lane.in_part; i < STREAM_QUADS; i += WG * STREAM_EACH) {
        if STREAM_EACH > 4u {
            sum += stream_four(row, i) + stream_four(row, i + WG * 4u);
        } else if STREAM_EACH > 2u {
            sum += stream_four(row, i);
        } else if STREAM_EACH > 1u {
            sum += stream_two(row, i);
        } else {
            sum += stream_at(row, i);
        }
    }
    sum = group_sum(sum, lane);
    if lane.part + lane.in_part == 0u && row < STREAM_ROWS {
        y[p.y_width + p.low_quads + row] = sum;
    }
}

fn stream_two(row: u32, i: u32) -> f32 {
    return stream_at(row, i) + stream_at(row, i + WG);
}

fn stream_four(row: u32, i: u32) -> f32 {
    return stream_two(row, i) + stream_two(row, i + WG * 2u);
}

fn stream_at(row: u32, i: u32) -> f32 {
    let quad = min(i, STREAM_QUADS - 1u);
    let product = dot(low_quad(stream_p[min(row, STREAM_ROWS - 1u) * STREAM_QUADS + quad]), stream_h[quad]);
    return select(0.0, product, i < STREAM_QUADS);
}
