// A x is made beside W x, by workgroups of its own, and lies after it in the result.
//#use factor
//#use stream
//#use beside_x
//#use low_own
// Pieces of x that a lane prefetches at once, a power of two, eight at most: loops wait for memory in every turn.
override BESIDE_EACH: u32 = 4u;
@group(0) @binding(5) var<storage, read> low_a: array<LowQuad>;

fn make_low(lane: Lane) {}

fn low_beside(number: u32, lane: Lane) {
    let row = number + own_rows();
    if row >= p.low_quads {
        stream_beside(row - p.low_quads, lane);
        return;
    }
    var sum = 0.0;
    for (var i = lane.part * LANES + lane.in_part; i < beside_pieces(); i += WG * BESIDE_EACH) {
        if BESIDE_EACH > 4u {
            sum += beside_four(row, i) + beside_four(row, i + WG * 4u);
        } else if BESIDE_EACH > 2u {
            sum += beside_four(row, i);
        } else if BESIDE_EACH > 1u {
            sum += beside_two(row, i);
        } else {
            sum += beside_at(row, i);
        }
    }
    sum = group_sum(sum, lane);
    if lane.part + lane.in_part == 0u && row < p.low_quads {
        y[p.y_width + row] = sum;
    }
}

fn beside_two(row: u32, i: u32) -> f32 {
    return beside_at(row, i) + beside_at(row, i + WG);
}

fn beside_four(row: u32, i: u32) -> f32 {
    return beside_two(row, i) + beside_two(row, i + WG * 2u);
}

fn beside_at(row: u32, i: u32) -> f32 {
    let product = beside_dot(min(row, p.low_quads - 1u) * p.low_stride, min(i, beside_pieces() - 1u));
    return select(0.0, product, i < beside_pieces());
}
