// Rows of queries over keys: dq.
fn own_count() -> u32 {
    return p.tokens * heads_of_group();
}

fn own_place(row: u32, kv_head: u32) -> u32 {
    return place_of(row, kv_head);
}

// The keys that at least one of these rows sees.
fn others_of(first: u32, last: u32) -> vec2<u32> {
    let token = token_of(first);
    return vec2(max(first_key(token), starts[token]), token_of(last) + 1u);
}

fn own4(second: bool, row: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    return query4(second, row, kv_head, dim4);
}

fn other4(second: bool, key: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    return key4(second, key, kv_head, dim4);
}

fn summand(key: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    return k[key_index(key, kv_head) * DIM4 + dim4];
}

fn seen4(row: u32, keys: vec4<u32>) -> vec4<bool> {
    let position = vec4(token_of(row));
    return (keys <= position) & (position - keys < vec4(p.window)) & (keys >= vec4(starts[position.x]));
}

fn log_sum4(row: u32, keys: vec4<u32>, kv_head: u32) -> vec4<f32> {
    return vec4(log_sums[place_of(row, kv_head)]);
}

fn delta4(row: u32, keys: vec4<u32>, kv_head: u32) -> vec4<f32> {
    return vec4(delta[place_of(row, kv_head)]);
}
