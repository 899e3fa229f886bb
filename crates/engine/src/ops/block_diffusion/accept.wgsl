// A position is accepted if the entropies of all positions before it, in order of rising entropy, sum to no more than the bound. Accepted
// positions get their drawn token, others noise     one workgroup
//#use reduce

struct Params {
    positions: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> entropy: array<f32>;
@group(0) @binding(3) var<storage, read> best: array<u32>;
@group(0) @binding(4) var<storage, read> drawn: array<u32>;
@group(0) @binding(5) var<storage, read> noise: array<u32>;
@group(0) @binding(6) var<storage, read> bound: array<f32>;
@group(0) @binding(7) var<storage, read_write> canvas: array<u32>;
@group(0) @binding(8) var<storage, read_write> before: array<u32>;
@group(0) @binding(9) var<storage, read_write> statistics: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    var all = 0.0;
    var changed = 0.0;
    var accepted = 0.0;
    for (var i = lane.index; i < p.positions; i += WG) {
        let own = entropy[i];
        var sum = 0.0;
        for (var j = 0u; j < p.positions; j++) {
            let other = entropy[j];
            if other < own || (other == own && j < i) {
                sum += other;
            }
        }
        let is_accepted = sum <= bound[0];
        canvas[i] = select(noise[i], drawn[i], is_accepted);
        changed += select(0.0, 1.0, before[i] != best[i]);
        before[i] = best[i];
        accepted += select(0.0, 1.0, is_accepted);
        all += own;
    }
    all = wg_sum(all, lane);
    changed = wg_sum(changed, lane);
    accepted = wg_sum(accepted, lane);
    if lane.index == 0u {
        statistics[0] = all / f32(p.positions);
        statistics[1] = changed;
        statistics[2] = accepted;
    }
}
