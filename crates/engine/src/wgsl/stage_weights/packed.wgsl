// Stages packed weights in workgroup memory as f16, two at a time. Levels are taken relative to the middle of their range, which
// minimises the effect of rounding the scale.
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

// f16 from 1024 to 2047 are consecutive integers, so a byte in the lowest mantissa bits adds its value.
fn halves4(bytes: u32, scale: f16, middle: f16) -> vec4<f16> {
    // A signed byte with its sign bit flipped, read as unsigned, is the value plus 128.
    let word = select(bytes, bytes ^ 0x80808080u, SIGNED);
    let even = vec2<f16>(unpack2x16float((word & 0x00ff00ffu) | 0x64006400u));
    let odd = vec2<f16>(unpack2x16float(((word >> 8u) & 0x00ff00ffu) | 0x64006400u));
    let levels = vec4(even.x, odd.x, even.y, odd.y) - vec4(f16(select(1024.0, 1152.0, SIGNED) + MIDDLE));
    return fma(levels, vec4(scale), vec4(middle));
}
