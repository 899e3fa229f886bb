// token = members[clusters[position / each] * each + position % each]     one lane
struct Params {
    each: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> position: array<u32>;
@group(0) @binding(3) var<storage, read> clusters: array<u32>;
@group(0) @binding(4) var<storage, read> members: array<u32>;
@group(0) @binding(5) var<storage, read_write> token: array<u32>;

@compute @workgroup_size(1)
fn main() {
    let cluster = clusters[min(position[0] / p.each, arrayLength(&clusters) - 1u)];
    token[0] = members[min(cluster * p.each + position[0] % p.each, arrayLength(&members) - 1u)];
}
