// The columns of a product that limits what enters it: what begins them, between two limits, as tiles take them     one workgroup per
// column, and per row of the weight where those are not taken as they are
//#use weights
//#use quant
//#use reduce
//#use begin
//#use put

struct Params {
//#use slab
    least: f32,
    most: f32,
    // Added to each mean, inside the root.
    eps: f32,
    scaled: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

fn kernel(group: vec3<u32>, lane: Lane) {
    let column = grid_index(group);
    if column < p.count {
        begin(column, lane);
        put_column(column, lane);
    } else if column < p.count + p.rows {
        put_row(column - p.count, lane);
    }
}

// What lies behind the end of a column counts nothing.
fn x4(column: u32, k: u32) -> vec4<f32> {
    if k >= p.width {
        return vec4(0.0);
    }
    return clamp(begun4(column, k / 4u), vec4(p.least), vec4(p.most));
}
