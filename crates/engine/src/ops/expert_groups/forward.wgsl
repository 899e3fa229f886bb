// order = slots sorted by expert, offsets[e] = number of slots of experts before e     one workgroup per expert e, which reads all slots.
// Each lane takes a range of slots: it counts those of earlier experts and of expert e, then writes the latter to their positions.
const WG: u32 = 256u;

struct Params {
    slots: u32,
    chosen: u32,
    experts: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> ids: array<u32>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>;
@group(0) @binding(4) var<storage, read_write> offsets: array<u32>;

// Slots of earlier experts and of this one: an inclusive prefix sum over lanes.
var<workgroup> sh_counts: array<vec2<u32>, WG>;

// Slots of tokens past the count are sorted after all experts, and so are ids beyond the experts, so that every slot has a position.
fn expert_of(slot: u32) -> u32 {
    return select(p.experts, min(ids[slot], p.experts), slot / p.chosen < run.count);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let expert = group.x;
    let share = (p.slots + WG - 1u) / WG;
    let first = min(index * share, p.slots);
    let last = min(first + share, p.slots);
    var counts = vec2(0u);
    for (var slot = first; slot < last; slot++) {
        let other = expert_of(slot);
        counts += vec2(u32(other < expert), u32(other == expert));
    }
    sh_counts[index] = counts;
    workgroupBarrier();
    for (var step = 1u; step < WG; step *= 2u) {
        var before = vec2(0u);
        if index >= step {
            before = sh_counts[index - step];
        }
        workgroupBarrier();
        sh_counts[index] += before;
        workgroupBarrier();
    }
    let start = sh_counts[WG - 1u].x;
    var at = start + sh_counts[index].y - counts.y;
    for (var slot = first; slot < last; slot++) {
        if expert_of(slot) == expert {
            order[at] = slot;
            at++;
        }
    }
    if index == 0u {
        offsets[expert] = start;
        if expert == p.experts {
            offsets[expert + 1u] = p.slots;
        }
    }
}
