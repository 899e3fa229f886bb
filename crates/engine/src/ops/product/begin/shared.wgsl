// x lies in workgroup memory, group by group, so that lanes that read neighbouring units read neighbouring words. First as floats, then as
// the products want it.
//#use held
override UNITS: u32 = 48u;
override QUADS: u32 = 384u;

var<workgroup> sh_x: array<vec4<u32>, QUADS>;
// What the products want to know of a unit.
var<workgroup> sh_units: array<vec4<f32>, UNITS>;

// A lane's number in the workgroup.
fn number(lane: Lane) -> u32 {
    return lane.part * LANES + lane.in_part;
}

// Quads are counted through the units: where quad i lies, and its first column.
fn place(i: u32) -> u32 {
    return i % 8u * UNITS + i / 8u;
}

fn set_quad(i: u32, quad: vec4<f32>) {
    sh_x[place(i)] = bitcast<vec4<u32>>(quad);
}

fn get_quad(i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(sh_x[place(i)]);
}

fn quad_column(i: u32) -> u32 {
    return unit_column(i / 8u, i % 8u);
}

// Behind the last write to x.
fn hold(lane: Lane) {
    workgroupBarrier();
    for (var unit = number(lane); unit < UNITS; unit += WG) {
        hold_unit(unit);
    }
    workgroupBarrier();
}

fn shared_words(unit: u32) -> array<vec4<u32>, 8> {
    return array<vec4<u32>, 8>(
        sh_x[unit], sh_x[UNITS + unit], sh_x[UNITS * 2u + unit], sh_x[UNITS * 3u + unit],
        sh_x[UNITS * 4u + unit], sh_x[UNITS * 5u + unit], sh_x[UNITS * 6u + unit], sh_x[UNITS * 7u + unit],
    );
}

fn shared_floats(unit: u32) -> array<vec4<f32>, 8> {
    let words = shared_words(unit);
    return array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(words[0]), bitcast<vec4<f32>>(words[1]), bitcast<vec4<f32>>(words[2]), bitcast<vec4<f32>>(words[3]),
        bitcast<vec4<f32>>(words[4]), bitcast<vec4<f32>>(words[5]), bitcast<vec4<f32>>(words[6]), bitcast<vec4<f32>>(words[7]),
    );
}
