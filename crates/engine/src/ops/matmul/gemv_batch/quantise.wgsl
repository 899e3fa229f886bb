// Runs the prologue of each token and writes x in the form that workgroups of matmul/gemv stage, for matmul/gemv_batch: one workgroup per token
//#use params
//#use weights
//#use quant
//#use unit
//#use team
//#use prologue
//#use lora
//#use write_x
@group(0) @binding(4) var<storage, read_write> staged_x: array<vec4<u32>>;

fn kernel(group: vec3<u32>, lane: Lane) {
    if PADDED > 0u && group.x >= run.count {
        return;
    }
    token = group.x;
    prologue(0u, lane);
    write_staged(group.x, lane);
}
