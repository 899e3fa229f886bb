// Converts columns of x for matrix units, and rows of the weight for int8 units     one workgroup per column or row
//#use weights
//#use quant
//#use columns
//#use reduce
//#use prepare_x

struct Params {
//#use slab
}

@group(0) @binding(0) var<uniform> p: Params;

fn kernel(group: vec3<u32>, lane: Lane) {
    let column = grid_index(group);
    if column < p.count {
        prepare_column(column, column, lane);
    } else if column < p.count + p.rows {
        prepare_row(column - p.count, lane);
    }
}
