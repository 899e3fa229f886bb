// The k best of each CHUNK candidates, in order     one workgroup per chunk. The k-th of the lanes' best is a bound that all of the k best
// reach; what reaches it is a short list, in which each finds its place by counting those before it.
//#use key
//#use candidates

const WG: u32 = 256u;
const CHUNK: u32 = 2048u;
// What reaches the bound lies in the shares of k lanes: 128 times 8 candidates at most.
const LIST: u32 = 1024u;
// Comes after all real candidates; fills the list of a chunk that has fewer than k.
const NOBODY: u32 = 0xffffffffu;

// The last launch gives logits, those before it keys.
override LAST: u32 = 1u;

struct Params {
    candidates: u32,
    k: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> best: array<u32>;
@group(0) @binding(3) var<storage, read_write> best_ids: array<u32>;

var<workgroup> sh_keys: array<u32, LIST>;
var<workgroup> sh_ids: array<u32, LIST>;
var<workgroup> sh_bound: vec2<u32>;
var<workgroup> sh_count: atomic<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let chunk = grid_index(group);
    let first = chunk * CHUNK;
    if first >= p.candidates {
        return;
    }
    let end = min(first + CHUNK, p.candidates);
    find_bound(first, end, lane);
    workgroupBarrier();
    let bound = sh_bound;
    for (var i = first + lane; i < end; i += WG) {
        let key = candidate_key(i);
        let id = candidate_id(i);
        if id != NOBODY && !goes_before(bound.x, bound.y, key, id) {
            let slot = atomicAdd(&sh_count, 1u);
            sh_keys[slot] = key;
            sh_ids[slot] = id;
        }
    }
    workgroupBarrier();
    let count = atomicLoad(&sh_count);
    for (var i = lane; i < count; i += WG) {
        store(chunk, place(sh_keys[i], sh_ids[i], count), sh_keys[i], sh_ids[i]);
    }
    for (var i = count + lane; i < p.k; i += WG) {
        store(chunk, i, 0u, NOBODY);
    }
}

// The k-th of the lanes' best candidates.
fn find_bound(first: u32, end: u32, lane: u32) {
    var key = 0u;
    var id = NOBODY;
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
    if lane == 0u {
        atomicStore(&sh_count, 0u);
    }
    workgroupBarrier();
    var before = place(key, id, WG);
    // Lanes without candidates are alike.
    for (var i = 0u; id == NOBODY && i < lane; i++) {
        before += u32(sh_ids[i] == NOBODY);
    }
    if before == p.k - 1u {
        sh_bound = vec2(key, id);
    }
}

// How many of the first `count` go before a candidate.
fn place(key: u32, id: u32, count: u32) -> u32 {
    var before = 0u;
    for (var i = 0u; i < count; i++) {
        before += u32(goes_before(sh_keys[i], sh_ids[i], key, id));
    }
    return before;
}

fn store(chunk: u32, at: u32, key: u32, id: u32) {
    if at < p.k {
        best[chunk * p.k + at] = select(key, bits_of(key), LAST != 0u);
        best_ids[chunk * p.k + at] = id;
    }
}
