// x is in memory as digits.
override SPAN: u32 = 32u;
override UNITS: u32 = 1u;

fn beside_x(quad: u32) -> vec4<f32> {
    let column = quad * 4u;
    let unit = column / SPAN * (SPAN / 32u) + column % (SPAN / 2u) / 16u;
    let half = column % SPAN / (SPAN / 2u);
    let two = kept_at(half * 2u + quad % 4u / 2u, unit);
    let digits = select(two.xy, two.zw, quad % 2u == 1u);
    let ones = about_piece(unit).zw;
    return vec4<f32>(unpack4xI8(digits.x) * 256 + unpack4xI8(digits.y)) * select(ones.x, ones.y, half == 1u);
}
