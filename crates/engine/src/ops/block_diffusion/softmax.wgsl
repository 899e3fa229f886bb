// p = softmax(z), its entropy, its most likely id, and an id drawn from it     one workgroup per row
//#use reduce

struct Params {
    rows: u32,
    width: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> z: array<f32>;
@group(0) @binding(3) var<storage, read> uniforms: array<f32>;
@group(0) @binding(4) var<storage, read_write> probabilities: array<f32>;
@group(0) @binding(5) var<storage, read_write> entropy: array<f32>;
@group(0) @binding(6) var<storage, read_write> best: array<u32>;
@group(0) @binding(7) var<storage, read_write> drawn: array<u32>;

var<workgroup> sh_parts: array<f32, WG>;
var<workgroup> sh_ids: array<u32, WG>;
// The lane that draws, the sum of the lanes before it, and the sum to reach.
var<workgroup> sh_draw: vec3<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.width;
    var most = -3.0e38;
    var id = 0xffffffffu;
    for (var j = lane.index; j < p.width; j += WG) {
        let x = z[start + j];
        if x > most {
            most = x;
            id = j;
        }
    }
    let largest = wg_max(most, lane);
    sh_ids[lane.index] = select(0xffffffffu, id, most == largest);
    var part = 0.0;
    var heat = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        let below = z[start + j] - largest;
        let weight = exp(below);
        part += weight;
        heat += weight * below;
    }
    let all_heat = wg_sum(heat, lane);
    sh_parts[lane.index] = part;
    workgroupBarrier();
    // One lane adds up, so that the order of the sums is fixed.
    if lane.index == 0u {
        var sum = 0.0;
        var first = 0xffffffffu;
        for (var i = 0u; i < WG; i++) {
            sum += sh_parts[i];
            first = min(first, sh_ids[i]);
        }
        let threshold = uniforms[row] * sum;
        var before = 0.0;
        var chosen = vec2(0.0);
        for (var i = 0u; i < WG; i++) {
            if sh_parts[i] > 0.0 {
                chosen = vec2(f32(i), before);
                before += sh_parts[i];
                if before >= threshold {
                    break;
                }
            }
        }
        sh_draw = vec3(chosen, threshold);
        entropy[row] = log(sum) - all_heat / sum;
        best[row] = min(first, p.width - 1u);
        sh_parts[0] = sum;
    }
    workgroupBarrier();
    let sum = sh_parts[0];
    for (var j = lane.index; j < p.width; j += WG) {
        probabilities[start + j] = exp(z[start + j] - largest) / sum;
    }
    if lane.index == u32(sh_draw.x) {
        var reached = sh_draw.y;
        var chosen = min(lane.index, p.width - 1u);
        for (var j = lane.index; j < p.width; j += WG) {
            let weight = exp(z[start + j] - largest);
            if weight > 0.0 {
                chosen = j;
            }
            reached += weight;
            if reached >= sh_draw.z {
                break;
            }
        }
        drawn[row] = chosen;
    }
}
