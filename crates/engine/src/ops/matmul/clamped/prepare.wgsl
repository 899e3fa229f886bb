// The columns of a linear layer with clamped input: prologue, clamp, conversion for the tiles; one version per distinct clamp     one
// workgroup per column, and per row of the weight for int8 units
//#use weights
//#use quant
//#use reduce
//#use prologue
//#use prepare_x

struct Params {
//#use slab
    // Added to each mean square before the root.
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

// Bounds of the current version.
var<private> least: f32;
var<private> most: f32;

fn kernel(group: vec3<u32>, lane: Lane) {
    let column = grid_index(group);
    if column < p.count {
        prologue(column, lane);
        for (var version = 0u; version < p.versions; version++) {
            least = vec3(p.least0, p.least1, p.least2)[version];
            most = vec3(p.most0, p.most1, p.most2)[version];
            prepare_column(column, version * version_stride() + column, lane);
        }
    } else if column < p.count + p.rows {
        prepare_row(column - p.count, lane);
    }
}

// Columns from one version to the next: whole blocks of sixteen.
fn version_stride() -> u32 {
    return (p.count + 15u) / 16u * 16u;
}

// Elements past the end of a column are zero.
fn x4(column: u32, k: u32) -> vec4<f32> {
    if k >= p.width {
        return vec4(0.0);
    }
    return clamp(prologue4(column, k / 4u), vec4(least), vec4(most));
}
