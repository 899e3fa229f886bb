// Packed weights to f16 in workgroup memory, two at a time. Bytes are counted from the middle of their range: what the scale
// is rounded by then weighs least.
//#use stage_units
alias LoadedWeights = Packed;

fn load_packed_unit(unit: u32) -> LoadedWeights {
    return packed_at(unit);
}

fn stage_unit(u: LoadedWeights, at: u32) {
    let scale = vec2<f16>(u.scale);
    let middle = vec2<f16>((MIDDLE - u.bias) * u.scale - u.offset);
    sh_w[at] = halves4(u.levels[0], scale.x, middle.x);
    sh_w[at + 1u] = halves4(u.levels[1], scale.x, middle.x);
    sh_w[at + 2u] = halves4(u.levels[2], scale.x, middle.x);
    sh_w[at + 3u] = halves4(u.levels[3], scale.x, middle.x);
    sh_w[at + 4u] = halves4(u.levels[4], scale.y, middle.y);
    sh_w[at + 5u] = halves4(u.levels[5], scale.y, middle.y);
    sh_w[at + 6u] = halves4(u.levels[6], scale.y, middle.y);
    sh_w[at + 7u] = halves4(u.levels[7], scale.y, middle.y);
}

// Halves from 1024 to 2047 are whole numbers, so that a byte in their lowest bits counts them.
fn halves4(bytes: u32, scale: f16, middle: f16) -> vec4<f16> {
    // With the sign bit flipped, a signed byte is an unsigned one that is 128 too large.
    let word = select(bytes, bytes ^ 0x80808080u, SIGNED);
    let even = vec2<f16>(unpack2x16float((word & 0x00ff00ffu) | 0x64006400u));
    let odd = vec2<f16>(unpack2x16float(((word >> 8u) & 0x00ff00ffu) | 0x64006400u));
    let levels = vec4(even.x, odd.x, even.y, odd.y) - vec4(f16(select(1024.0, 1152.0, SIGNED) + MIDDLE));
    return fma(levels, vec4(scale), vec4(middle));
}
