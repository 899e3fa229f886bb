// What block formats are written with: the slab's words, and bytes as numbers. The kernel's parameters name the planes.
//
// A format's part defines load_unit(unit), 32 weights of the slab in groups of four neighbours, and unit_column(unit, group),
// the column of a group's first weight for a unit counted inside its row.
//
// unpack2x16float may flush subnormal halves (below 6.1e-5) to zero. No GPU we know does, and a scale that small makes weights
// no sum notices, so halves are not decoded by integers.
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;

fn word(i: u32) -> u32 {
    return w[i / 4u][i % 4u];
}

fn bytes4(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4(word) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u));
}

fn signed_byte(word: u32, i: u32) -> f32 {
    return f32(i32(word << (24u - i * 8u)) >> 24u);
}

// The half number i of a plane of halves.
fn half_at(plane: u32, i: u32) -> f32 {
    let pair = unpack2x16float(word(plane + i / 2u));
    return select(pair.x, pair.y, i % 2u == 1u);
}

// Bits 0 to 3 of each word, one to a byte.
fn spread(bits: vec4<u32>) -> vec4<u32> {
    return ((bits & vec4(15u)) * vec4(0x204081u)) & vec4(0x01010101u);
}

// Entries of a table of 16 bytes, by the nibbles in the low halves of a word's bytes.
fn look_up(table: vec4<u32>, nibbles: u32) -> vec4<f32> {
    let q = vec4(nibbles) >> vec4(0u, 8u, 16u, 24u);
    let second = (q & vec4(4u)) != vec4(0u);
    let low = select(vec4(table.x), vec4(table.y), second);
    let high = select(vec4(table.z), vec4(table.w), second);
    let four = select(low, high, (q & vec4(8u)) != vec4(0u));
    return vec4<f32>((four >> ((q & vec4(3u)) * 8u)) & vec4(255u));
}

// Scale and minimum of sub-block s of Q4_K and Q5_K, packed in the 12 bytes behind d and dmin.
fn k_scales(head: vec4<u32>, s: u32) -> vec2<f32> {
    let shift = (s % 4u) * 8u;
    let a = (head.y >> shift) & 255u;
    let b = (head.z >> shift) & 255u;
    let c = (head.w >> shift) & 255u;
    let late = s >= 4u;
    let scale = select(a & 63u, (c & 15u) | ((a >> 6u) << 4u), late);
    let minimum = select(b & 63u, (c >> 4u) | ((b >> 6u) << 4u), late);
    return vec2(f32(scale), f32(minimum));
}
