// Decoding of block formats: reads the slab's words and converts bytes to f32. The kernel's parameters hold the planes' offsets.
//
// A format's part defines unit_at(unit), which decodes 32 weights of the slab in groups of four consecutive ones, and unit_column(unit, group),
// the column of a group's first weight, for a unit counted from the start of its row.
//
// unpack2x16float may flush subnormal f16 (below 6.1e-5) to zero. No known GPU does, and weights with so small a scale do not matter,
// so f16 is not decoded with integers.
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;

// Weights of groups 2i and 2i + 1 are levels * scale[i] - offset[i].
struct Unit {
    levels: array<vec4<f32>, 8>,
    scale: vec4<f32>,
    offset: vec4<f32>,
}

// Integer formats also define packed_at(unit): bytes, four consecutive weights per word; SIGNED: whether they may be negative; MIDDLE:
// the middle of their range. Weights of the first four groups are (byte - bias) * scale.x - offset.x, those of the others use y. If
// units 2i and 2i + 1 share everything but the bytes and have no bias, the format also defines levels_at(unit), the bytes, and
// pair_scales(i), the scales (xy) and offsets (zw).
struct Packed {
    levels: array<u32, 8>,
    bias: f32,
    scale: vec2<f32>,
    offset: vec2<f32>,
}

// For unsigned bytes without a bias.
fn unpacked(u: Packed) -> Unit {
    let levels = array<vec4<f32>, 8>(
        bytes4(u.levels[0]), bytes4(u.levels[1]), bytes4(u.levels[2]), bytes4(u.levels[3]),
        bytes4(u.levels[4]), bytes4(u.levels[5]), bytes4(u.levels[6]), bytes4(u.levels[7]),
    );
    return Unit(levels, u.scale.xxyy, u.offset.xxyy);
}

// With a bias, subtracted from each byte, where that is exact.
fn unpacked_less(u: Packed, bias: f32) -> Unit {
    let whole = unpacked(u);
    let levels = array<vec4<f32>, 8>(
        whole.levels[0] - bias, whole.levels[1] - bias, whole.levels[2] - bias, whole.levels[3] - bias,
        whole.levels[4] - bias, whole.levels[5] - bias, whole.levels[6] - bias, whole.levels[7] - bias,
    );
    return Unit(levels, whole.scale, whole.offset);
}

fn load_unit(unit: u32) -> array<vec4<f32>, 8> {
    let u = unit_at(unit);
    return array<vec4<f32>, 8>(
        u.levels[0] * u.scale.x - u.offset.x, u.levels[1] * u.scale.x - u.offset.x,
        u.levels[2] * u.scale.y - u.offset.y, u.levels[3] * u.scale.y - u.offset.y,
        u.levels[4] * u.scale.z - u.offset.z, u.levels[5] * u.scale.z - u.offset.z,
        u.levels[6] * u.scale.w - u.offset.w, u.levels[7] * u.scale.w - u.offset.w,
    );
}

fn word(i: u32) -> u32 {
    return w[i / 4u][i % 4u];
}

fn bytes4(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4(word) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u));
}

fn signed_byte(word: u32, i: u32) -> f32 {
    return f32(i32(word << (24u - i * 8u)) >> 24u);
}

// The i-th f16 of a plane of f16.
fn half_at(plane: u32, i: u32) -> f32 {
    let pair = unpack2x16float(word(plane + i / 2u));
    return select(pair.x, pair.y, i % 2u == 1u);
}

// Spreads bits 0 to 3 of a word to one per byte.
fn spread(bits: vec4<u32>) -> vec4<u32> {
    return ((bits & vec4(15u)) * vec4(0x204081u)) & vec4(0x01010101u);
}

// Entries of a 16-byte table, selected by the low nibbles of a word's bytes.
fn look_up(table: vec4<u32>, nibbles: u32) -> vec4<f32> {
    let q = vec4(nibbles) >> vec4(0u, 8u, 16u, 24u);
    let second = (q & vec4(4u)) != vec4(0u);
    let low = select(vec4(table.x), vec4(table.y), second);
    let high = select(vec4(table.z), vec4(table.w), second);
    let four = select(low, high, (q & vec4(8u)) != vec4(0u));
    return vec4<f32>((four >> ((q & vec4(3u)) * 8u)) & vec4(255u));
}

// Scales (xy) and minima (zw) of sub-blocks s and s + 1 of Q4_K and Q5_K, s even, packed in the 12 bytes after d and dmin.
fn k_scales(head: vec4<u32>, s: u32) -> vec4<f32> {
    let shifted = head.yzw >> vec3((s % 4u) * 8u);
    let late = s >= 4u;
    let upper = (shifted.xy >> vec2(2u)) & vec2(0x3030u);
    let lower = vec2(shifted.z, shifted.z >> 4u) & vec2(0x0f0fu);
    let pairs = select(shifted.xy & vec2(0x3f3fu), lower | upper, late);
    return vec4<f32>(vec4(pairs.x & 255u, (pairs.x >> 8u) & 255u, pairs.y & 255u, (pairs.y >> 8u) & 255u));
}
