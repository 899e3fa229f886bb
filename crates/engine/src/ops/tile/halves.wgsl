// Columns of x as halves     one workgroup per column
//#use weights
//#use quant
//#use columns
//#use reduce
//#use put

struct Params {
    plane0: u32,
    plane1: u32,
    plane2: u32,
    plane3: u32,
    width: u32,
    row_units: u32,
    rows: u32,
    first_row: u32,
    all_rows: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

fn kernel(group: vec3<u32>, lane: Lane) {
    let column = grid_index(group);
    if column < p.count {
        put_column(column, lane);
    }
}
