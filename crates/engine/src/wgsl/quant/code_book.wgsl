
// Entry i of the code book in a plane.
fn book(plane: u32, i: u32) -> u32 {
    return (word(plane + i / 2u) >> (i % 2u * 16u)) & 0xffffu;
}

// Byte i of a word.
fn byte_of(word: u32, i: u32) -> u32 {
    return (word >> (i * 8u)) & 255u;
}

// Byte i, counted from the first byte of a word.
fn byte_at(first: u32, i: u32) -> u32 {
    return byte_of(word(first + i / 4u), i % 4u);
}

// Unpacks four fields of two or three bits.
fn pairs4(bits: u32) -> vec4<u32> {
    return (vec4(bits) >> vec4(0u, 2u, 4u, 6u)) & vec4(3u);
}

fn triples4(bits: u32) -> vec4<u32> {
    return (vec4(bits) >> vec4(0u, 3u, 6u, 9u)) & vec4(7u);
}

// Eight signs from a 7-bit code: the eighth makes the number of minus signs even.
fn even_signs(code: u32) -> u32 {
    let seven = code & 127u;
    return seven | ((countOneBits(seven) & 1u) << 7u);
}

fn signed4(levels: vec4<u32>, signs: u32) -> vec4<f32> {
    let minus = ((vec4(signs) >> vec4(0u, 1u, 2u, 3u)) & vec4(1u)) == vec4(1u);
    let magnitudes = vec4<f32>(levels);
    return select(magnitudes, -magnitudes, minus);
}

// Magnitudes 8, 25 and 43.
fn iq2_levels(bits: u32, signs: u32) -> vec4<f32> {
    let i = pairs4(bits);
    return signed4(i * 17u + (i >> vec4(1u)) + 8u, signs);
}

fn iq2_unit(e: vec4<u32>, s: vec4<u32>) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        iq2_levels(e.x, s.x), iq2_levels(e.x >> 8u, s.x >> 4u), iq2_levels(e.y, s.y), iq2_levels(e.y >> 8u, s.y >> 4u),
        iq2_levels(e.z, s.z), iq2_levels(e.z >> 8u, s.z >> 4u), iq2_levels(e.w, s.w), iq2_levels(e.w >> 8u, s.w >> 4u),
    );
}

// Levels -1, 0 and 1, shifted by an eighth up or down.
fn iq1_levels(bits: u32, down: u32) -> vec4<f32> {
    return vec4<f32>(pairs4(bits)) - select(0.875, 1.125, down == 1u);
}

fn iq1_unit(e: vec4<u32>, down: vec4<u32>) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        iq1_levels(e.x, down.x), iq1_levels(e.x >> 8u, down.x), iq1_levels(e.y, down.y), iq1_levels(e.y >> 8u, down.y),
        iq1_levels(e.z, down.z), iq1_levels(e.z >> 8u, down.z), iq1_levels(e.w, down.w), iq1_levels(e.w >> 8u, down.w),
    );
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
