// Results are digits, as the weight that takes them next is read. Sixteen neighbours are half of one of its units and have a scale of their
// own: two groups of four to a word, plane by plane, then for both halves their sum and what a one stands for.
//#use form
// As for floats in the order of units.
override SPAN: u32 = 32u;
override UNITS: u32 = 1u;
// Results of a turn, whole halves; and of two turns, since naga stumbles over an array sized by a product.
override MADE: u32 = 16u;
override MADE_TWICE: u32 = 32u;
@group(0) @binding(4) var<storage, read_write> y: array<vec2<u32>>;

// Turns use one half of it and the other: who is still reading what a turn made has waited for all when the next but one begins.
var<workgroup> sh_made: array<f32, MADE_TWICE>;
var<private> side: u32 = 0u;

fn give(row: u32, value: f32) {
    sh_made[side + row % MADE] = value;
}

fn made4(i: u32) -> vec4<f32> {
    let at = side + i;
    return vec4(sh_made[at], sh_made[at + 1u], sh_made[at + 2u], sh_made[at + 3u]);
}

// A lane takes four of them; what they have in common with their neighbours it finds for itself.
fn give_all(turn: u32, lane: Lane) {
    workgroupBarrier();
    let quad = lane.part * LANES + lane.in_part;
    let row = turn * MADE + quad * 4u;
    if quad < MADE / 4u && row < p.rows / 2u {
        let first = quad / 4u * 16u;
        let a = made4(first);
        let b = made4(first + 4u);
        let c = made4(first + 8u);
        let d = made4(first + 12u);
        let sizes = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
        let known = known_of(vec4(dot(a + b + c + d, vec4(1.0)), 0.0, 0.0, 0.0), max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
        let unit = row / SPAN * (SPAN / 32u) + row % (SPAN / 2u) / 16u;
        let half = row % SPAN / (SPAN / 2u);
        let plane = half * 2u + quad % 4u / 2u;
        y[((token * 5u + plane) * UNITS + unit) * 2u + quad % 2u] = formed(made4(quad * 4u), known);
        if quad % 4u == 0u {
            y[((token * 5u + 4u) * UNITS + unit) * 2u + half] = bitcast<vec2<u32>>(known.xz);
        }
    }
    side = MADE - side;
}
