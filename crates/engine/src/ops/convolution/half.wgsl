// 3x3 convolution with stride 2: y[t, f, o] = sum of w[o, c, a, b] * x[2t + a - 1, 2f + b - 1, c], zero padding     one lane per output
// element; weights of a few input channels at a time are staged in workgroup memory, where neighbouring lanes read neighbours
struct Params {
    rows: u32,
    columns: u32,
    channels: u32,
    out_channels: u32,
    // The output channels of this dispatch.
    first: u32,
    outs: u32,
    // Input channels at a time.
    chunk: u32,
    len: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

var<workgroup> sh_w: array<f32, 2048>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    let out = i % p.outs;
    let position = i / p.outs;
    // One more than `outs`, so that a lane's writes do not conflict in a memory bank.
    let stride = p.outs + 1u;
    var sum = 0.0;
    for (var first = 0u; first < p.channels; first += p.chunk) {
        let taps = min(p.chunk, p.channels - first) * 9u;
        for (var j = index; j < taps * p.outs; j += 256u) {
            sh_w[j % taps * stride + j / taps] = w[((p.first + j / taps) * p.channels + first) * 9u + j % taps];
        }
        workgroupBarrier();
        if i < p.len {
            sum += part(position, first, taps / 9u, out, stride);
        }
        // The next weights are written over these.
        workgroupBarrier();
    }
    if i < p.len {
        y[position * p.out_channels + p.first + out] = sum;
    }
}

// The sum over `count` input channels from `first` on.
fn part(position: u32, first: u32, count: u32, out: u32, stride: u32) -> f32 {
    let across = (p.columns + 1u) / 2u;
    var sum = 0.0;
    for (var tap = 0u; tap < 9u; tap++) {
        // -1 wraps around, and so is out of range too.
        let row = position / across * 2u + tap / 3u - 1u;
        let column = position % across * 2u + tap % 3u - 1u;
        if row >= p.rows || column >= p.columns {
            continue;
        }
        let start = (row * p.columns + column) * p.channels + first;
        for (var c = 0u; c < count; c++) {
            sum += x[start + c] * sh_w[(c * 9u + tap) * stride + out];
        }
    }
    return sum;
}
