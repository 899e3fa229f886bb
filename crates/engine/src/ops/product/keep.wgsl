// x of each token as the workgroups of product/vector hold it, written down for product/several: a workgroup a token
//#use params
//#use weights
//#use quant
//#use unit
//#use team
//#use begin
//#use low
//#use keep
@group(0) @binding(4) var<storage, read_write> kept: array<vec4<u32>>;

fn kernel(group: vec3<u32>, lane: Lane) {
    if group.x >= run.count {
        return;
    }
    token = group.x;
    begin(0u, lane);
    keep(group.x, lane);
}
