// y[patch, channel, row, column] = scale * (byte / 255 - middle) of the image's pixel, blended over white     one lane per element
struct Params {
    len: u32,
    columns: u32,
    side: u32,
    scale: f32,
    middle: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
// Row by row: red in the lowest bits, then green, blue and alpha.
@group(0) @binding(2) var<storage, read> pixels: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i >= p.len {
        return;
    }
    let square = p.side * p.side;
    let patch_index = i / (3u * square);
    let channel = i / square % 3u;
    let row = patch_index / p.columns * p.side + i % square / p.side;
    let column = patch_index % p.columns * p.side + i % p.side;
    let pixel = pixels[row * p.columns * p.side + column];
    let alpha = pixel >> 24u;
    // Rounded as on the CPU, where images are blended over white before they are resized.
    let byte = (((pixel >> (channel * 8u)) & 255u) * alpha + 255u * (255u - alpha) + 127u) / 255u;
    y[i] = p.scale * (f32(byte) * (1.0 / 255.0) - p.middle);
}
