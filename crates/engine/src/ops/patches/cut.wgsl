// y[square, channel, row, column] = scale * (byte / 255 - middle) of the picture's pixel there     one lane per element
struct Params {
    len: u32,
    columns: u32,
    side: u32,
    scale: f32,
    middle: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
// Pixels of three bytes, row by row; four bytes to a word, the first in its lowest bits.
@group(0) @binding(2) var<storage, read> pixels: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i >= p.len {
        return;
    }
    let square = p.side * p.side;
    let number = i / (3u * square);
    let channel = i / square % 3u;
    let row = number / p.columns * p.side + i % square / p.side;
    let column = number % p.columns * p.side + i % p.side;
    let at = (row * p.columns * p.side + column) * 3u + channel;
    let byte = (pixels[at / 4u] >> (at % 4u * 8u)) & 255u;
    y[i] = p.scale * (f32(byte) * (1.0 / 255.0) - p.middle);
}
