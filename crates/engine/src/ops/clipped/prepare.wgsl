// The columns of a product that limits what enters it: what begins them, between limits, as tiles take them; a version of each for every
// two limits     one workgroup per column, and per row of the weight where those are not taken as they are
//#use weights
//#use quant
//#use reduce
//#use begin
//#use put

struct Params {
//#use slab
    // Added to each mean, inside the root.
    eps: f32,
    scaled: u32,
    versions: u32,
    least0: f32,
    least1: f32,
    least2: f32,
    most0: f32,
    most1: f32,
    most2: f32,
}

@group(0) @binding(0) var<uniform> p: Params;

// Those of the version that is being made.
var<private> least: f32;
var<private> most: f32;

fn kernel(group: vec3<u32>, lane: Lane) {
    let column = grid_index(group);
    if column < p.count {
        begin(column, lane);
        for (var version = 0u; version < p.versions; version++) {
            least = vec3(p.least0, p.least1, p.least2)[version];
            most = vec3(p.most0, p.most1, p.most2)[version];
            put_column(column, version * columns_apart() + column, lane);
        }
    } else if column < p.count + p.rows {
        put_row(column - p.count, lane);
    }
}

// From one version to the next: whole blocks of sixteen.
fn columns_apart() -> u32 {
    return (p.count + 15u) / 16u * 16u;
}

// What lies past the end of a column counts nothing.
fn x4(column: u32, k: u32) -> vec4<f32> {
    if k >= p.width {
        return vec4(0.0);
    }
    return clamp(begun4(column, k / 4u), vec4(least), vec4(most));
}
