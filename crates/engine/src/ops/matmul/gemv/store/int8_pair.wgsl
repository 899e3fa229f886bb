// Outputs are int8 hi/lo pairs, as their reader takes them. Sixteen adjacent outputs are half of a unit with its own scale: two vec4s per
// word, plane by plane, then the sum and scale of both halves.
//#use quantise
// As for the permuted layout of floats.
override SPAN: u32 = 32u;
override UNITS: u32 = 1u;
// Outputs of a turn, whole halves; and twice that, since naga rejects an array sized by a product of overrides.
override OUTPUTS: u32 = 16u;
override OUTPUTS_TWICE: u32 = 32u;
@group(0) @binding(4) var<storage, read_write> y: array<vec2<u32>>;

// Turns alternate between its halves: a lane that still reads the outputs of a turn has passed a barrier before the next but one turn begins.
var<workgroup> sh_outputs: array<f32, OUTPUTS_TWICE>;
var<private> side: u32 = 0u;

fn store_output(row: u32, value: f32) {
    sh_outputs[side + row % OUTPUTS] = value;
}

fn outputs4(i: u32) -> vec4<f32> {
    let at = side + i;
    return vec4(sh_outputs[at], sh_outputs[at + 1u], sh_outputs[at + 2u], sh_outputs[at + 3u]);
}

// A lane quantises four outputs; it computes the statistics of their half itself.
fn flush_outputs(turn: u32, lane: Lane) {
    workgroupBarrier();
    let four = lane.part * LANES + lane.in_part;
    let row = turn * OUTPUTS + four * 4u;
    if four < OUTPUTS / 4u && row < p.rows / 2u {
        let first = four / 4u * 16u;
        let a = outputs4(first);
        let b = outputs4(first + 4u);
        let c = outputs4(first + 8u);
        let d = outputs4(first + 12u);
        let sizes = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
        let stats = stats_of(vec4(dot(a + b + c + d, vec4(1.0)), 0.0, 0.0, 0.0), max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
        let unit = row / SPAN * (SPAN / 32u) + row % (SPAN / 2u) / 16u;
        let half = row % SPAN / (SPAN / 2u);
        let plane = half * 2u + four % 4u / 2u;
        y[((token * 5u + plane) * UNITS + unit) * 2u + four % 2u] = quantised(outputs4(four * 4u), stats);
        if four % 4u == 0u {
            y[((token * 5u + 4u) * UNITS + unit) * 2u + half] = bitcast<vec2<u32>>(stats.xz);
        }
    }
    side = OUTPUTS - side;
}
