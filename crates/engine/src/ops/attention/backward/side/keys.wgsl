// Keys over rows of queries: dk, and dv with PLAIN.
fn own_count() -> u32 {
    return p.tokens;
}

fn own_place(key: u32, kv_head: u32) -> u32 {
    return key_index(key, kv_head);
}

// The rows that see at least one of these keys.
fn others_of(first: u32, last: u32) -> vec2<u32> {
    // Without a window, `window` is u32::MAX: adding to it would overflow.
    var end = last + min(p.window, p.tokens - last);
    // Later packed sequences see none of them: the first position whose sequence starts after the last key, by bisection.
    var after = last + 1u;
    while after < end {
        let middle = (after + end) / 2u;
        if starts[middle] <= last {
            after = middle + 1u;
        } else {
            end = middle;
        }
    }
    return vec2(first, end) * heads_of_group();
}

fn own4(second: bool, key: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    return key4(second, key, kv_head, dim4);
}

fn other4(second: bool, row: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    return query4(second, row, kv_head, dim4);
}

fn summand(row: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    return query4(PLAIN == 1u, row, kv_head, dim4);
}

fn seen4(key: u32, rows: vec4<u32>) -> vec4<bool> {
    let positions = rows / heads_of_group();
    let firsts =
        vec4(starts[positions.x], starts[positions.y], starts[positions.z], starts[positions.w]);
    return (positions >= vec4(key)) & (positions - vec4(key) < vec4(p.window)) & (firsts <= vec4(key));
}

fn log_sum4(key: u32, rows: vec4<u32>, kv_head: u32) -> vec4<f32> {
    return vec4(
        log_sums[place_of(rows.x, kv_head)], log_sums[place_of(rows.y, kv_head)],
        log_sums[place_of(rows.z, kv_head)], log_sums[place_of(rows.w, kv_head)],
    );
}

fn delta4(key: u32, rows: vec4<u32>, kv_head: u32) -> vec4<f32> {
    let last = min(rows, vec4(p.tokens * heads_of_group() - 1u));
    return vec4(
        delta[place_of(last.x, kv_head)], delta[place_of(last.y, kv_head)],
        delta[place_of(last.z, kv_head)], delta[place_of(last.w, kv_head)],
    );
}
