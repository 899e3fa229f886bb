// Samples a token from a sorted list: top-k, top-p and min-p keep a prefix, then temperature, then the draw     one workgroup per list
struct Params {
    k: u32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> ids: array<u32>;
@group(0) @binding(3) var<storage, read> logits: array<f32>;
// Temperature, top-p, min-p, top-k.
//#single @group(0) @binding(4) var<storage, read> draw: array<f32>;
//#batch @group(0) @binding(4) var<storage, read> draws: array<vec4<f32>>;
//#batch var<private> draw: vec4<f32>;
@group(0) @binding(5) var<storage, read_write> token: array<u32>;

const WG: u32 = 128u;

var<workgroup> sh_plain: array<f32, WG>;
var<workgroup> sh_tempered: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    //#batch draw = draws[group.x];
    let temperature = draw[0];
    let first = group.x * p.k;
    if lane < p.k {
        let difference = max(logits[first + lane] - logits[first], -1.0e30);
        sh_plain[lane] = weight(difference);
        sh_tempered[lane] = weight(difference / max(temperature, 1.0e-6));
    }
    workgroupBarrier();
    // One lane walks the list, so that sums are accumulated in its order.
    if lane == 0u {
        let fixed = temperature <= 0.0 || logits[first] < -3.0e38;
        token[group.x] = ids[first + select(choose(kept(), group.x), 0u, fixed)];
    }
}

fn choose(kept: u32, row: u32) -> u32 {
    var total = 0.0;
    for (var i = 0u; i < kept; i++) {
        total += sh_tempered[i];
    }
    let goal = uniform_number(row) * total;
    var sum = 0.0;
    var chosen = 0u;
    for (var i = 0u; i < kept; i++) {
        if sh_tempered[i] > 0.0 {
            chosen = i;
        }
        sum += sh_tempered[i];
        if sum >= goal {
            break;
        }
    }
    return chosen;
}

fn kept() -> u32 {
    let k = select(p.k, min(u32(draw[3]), p.k), draw[3] >= 1.0);
    var total = 0.0;
    for (var i = 0u; i < k; i++) {
        total += sh_plain[i];
    }
    let goal = draw[1] * total;
    var count = 1u;
    var before = sh_plain[0];
    while count < k {
        if (draw[1] < 1.0 && before >= goal) || (draw[2] > 0.0 && sh_plain[count] < draw[2]) {
            break;
        }
        before += sh_plain[count];
        count++;
    }
    return count;
}

fn weight(exponent: f32) -> f32 {
    return select(exp(max(exponent, -87.0)), 0.0, exponent < -87.0);
}

fn uniform_number(row: u32) -> f32 {
    //#batch let run = row_step(row);
    let position = run.position + select(row, run.count - 1u, p.rows == 1u);
    return f32(mix_bits(mix_bits(run.seed) + position) >> 8u) / 16777216.0;
}

fn mix_bits(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}
