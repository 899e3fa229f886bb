// Columns of x as matrix units take them, and rows of the weight where those are not taken as they are     one workgroup per column or
// row
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
        put_column(column, column, lane);
    } else if column < p.count + p.rows {
        put_row(column - p.count, lane);
    }
}
