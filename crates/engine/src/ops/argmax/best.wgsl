// The best of `each` candidates     one workgroup per chunk of candidates (x) and row (y)
//#use key
//#use candidates

struct Params {
    candidates: u32,
    each: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> best_keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> best_ids: array<u32>;

const WG: u32 = 256u;

var<workgroup> sh_keys: array<u32, WG>;
var<workgroup> sh_ids: array<u32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    row_start = group.y * p.candidates;
    let first = group.x * p.each;
    let end = min(first + p.each, p.candidates);
    var key = 0u;
    var id = 0xffffffffu;
    for (var i = first + lane; i < end; i += WG) {
        let other = candidate_key(i);
        let other_id = candidate_id(i);
        if goes_before(other, other_id, key, id) {
            key = other;
            id = other_id;
        }
    }
    sh_keys[lane] = key;
    sh_ids[lane] = id;
    workgroupBarrier();
    for (var width = WG / 2u; width > 0u; width /= 2u) {
        if lane < width {
            let other = lane + width;
            if goes_before(sh_keys[other], sh_ids[other], sh_keys[lane], sh_ids[lane]) {
                sh_keys[lane] = sh_keys[other];
                sh_ids[lane] = sh_ids[other];
            }
        }
        workgroupBarrier();
    }
    if lane == 0u {
        let out = group.y * ((p.candidates + p.each - 1u) / p.each) + group.x;
        best_keys[out] = sh_keys[0];
        best_ids[out] = sh_ids[0];
    }
}
