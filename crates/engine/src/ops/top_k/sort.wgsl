// The k best of each CHUNK candidates, in order     one workgroup per chunk (x) and row (y) sorts it in workgroup memory
//#use key
//#use candidates

override CHUNK: u32 = 2048u;
// The last dispatch writes logits, the others keys.
override LAST: u32 = 1u;

struct Params {
    candidates: u32,
    k: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> best: array<u32>;
@group(0) @binding(3) var<storage, read_write> best_ids: array<u32>;

override WG: u32 = 256u;

var<workgroup> sh_keys: array<u32, CHUNK>;
var<workgroup> sh_ids: array<u32, CHUNK>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    row_start = group.y * p.candidates;
    let first = group.x * CHUNK;
    if first >= p.candidates {
        return;
    }
    for (var i = lane; i < CHUNK; i += WG) {
        // Padding sorts after all candidates.
        var key = 0u;
        var id = 0xffffffffu;
        if first + i < p.candidates {
            key = candidate_key(first + i);
            id = candidate_id(first + i);
        }
        sh_keys[i] = key;
        sh_ids[i] = id;
    }
    workgroupBarrier();
    sort(lane);
    let chunk = group.y * ((p.candidates + CHUNK - 1u) / CHUNK) + group.x;
    for (var i = lane; i < p.k; i += WG) {
        best[chunk * p.k + i] = select(sh_keys[i], bits_of(sh_keys[i]), LAST != 0u);
        best_ids[chunk * p.k + i] = sh_ids[i];
    }
}

// Bitonic sort: runs sorted in alternating directions are merged into runs twice as long.
fn sort(lane: u32) {
    for (var length = 2u; length <= CHUNK; length *= 2u) {
        for (var step = length / 2u; step > 0u; step /= 2u) {
            for (var pair = lane; pair < CHUNK / 2u; pair += WG) {
                // `step` is a power of two: a zero bit is inserted into the pair's index at the bit of `step`.
                let a = pair + (pair & ~(step - 1u));
                let b = a + step;
                let descending = (a & length) == 0u;
                let key_a = sh_keys[a];
                let key_b = sh_keys[b];
                let id_a = sh_ids[a];
                let id_b = sh_ids[b];
                if goes_before(key_b, id_b, key_a, id_a) == descending {
                    sh_keys[a] = key_b;
                    sh_keys[b] = key_a;
                    sh_ids[a] = id_b;
                    sh_ids[b] = id_a;
                }
            }
            workgroupBarrier();
        }
    }
}
