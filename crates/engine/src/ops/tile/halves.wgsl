// Columns of x as halves     one workgroup per column
//#use weights
//#use quant
//#use columns
//#use reduce
//#use put

struct Params {
//#use slab
}

@group(0) @binding(0) var<uniform> p: Params;

fn kernel(group: vec3<u32>, lane: Lane) {
    let column = grid_index(group);
    if column < p.count {
        put_column(column, lane);
    }
}
