// x as whole numbers of three digits with base 256: products with bytes are exact, four at a time. The largest number of a piece has
// 23 bits, so that x is rounded as a float would be.
//#use words
const LARGEST: f32 = 8323072.0;

// Behind the last write to x. A lane looks at each piece, then one at each group of four.
fn hold(lane: Lane) {
    workgroupBarrier();
    for (var piece = number(lane); piece < PIECES; piece += WG) {
        var about = of_unit(piece, 0u);
        if GROUPS > 8u {
            let other = of_unit(piece, 8u);
            about = vec4(about.xy + other.xy, max(about.z, other.z), 0.0);
        }
        // Sums over the halves of units, what a one stands for, and its inverse.
        let each = select(0.0, LARGEST / about.z, about.z > 1e-30);
        sh_pieces[piece] = vec4(about.xy, about.z / LARGEST, each);
    }
    workgroupBarrier();
    for (var i = number(lane); i < QUADS; i += WG) {
        sh_x[place(i)] = digits(get_quad(i) * sh_pieces[i / GROUPS].w);
    }
    workgroupBarrier();
}

// Sums over the halves of a unit, and its largest number.
fn of_unit(piece: u32, first: u32) -> vec4<f32> {
    let x = held_floats(piece, first);
    let a = max(max(abs(x[0]), abs(x[1])), max(abs(x[2]), abs(x[3])));
    let b = max(max(abs(x[4]), abs(x[5])), max(abs(x[6]), abs(x[7])));
    let four = max(a, b);
    let sums = column_of(x).sums;
    return vec4(sums.x + sums.y, sums.z + sums.w, max(max(four.x, four.y), max(four.z, four.w)), 0.0);
}

// High, middle and low digits in x, y and z.
fn digits(quad: vec4<f32>) -> vec4<u32> {
    let number = vec4<i32>(round(quad));
    let low = ((number + vec4(128)) & vec4(255)) - vec4(128);
    let upper = (number - low) >> vec4(8u);
    let middle = ((upper + vec4(128)) & vec4(255)) - vec4(128);
    let high = (upper - middle) >> vec4(8u);
    return vec4(pack4xI8(high), pack4xI8(middle), pack4xI8(low), 0u);
}
