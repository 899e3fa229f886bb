// x lies in workgroup memory, group by group, so that lanes that read neighbouring units read neighbouring words.
override UNITS: u32 = 48u;
override QUADS: u32 = 384u;

var<workgroup> sh_x: array<vec4<f32>, QUADS>;
var<workgroup> sh_sums: array<vec4<f32>, UNITS>;

// A lane's number in the workgroup.
fn number(lane: Lane) -> u32 {
    return lane.part * LANES + lane.in_part;
}

// Quads are counted through the units: where quad i lies, and its first column.
fn place(i: u32) -> u32 {
    return i % 8u * UNITS + i / 8u;
}

fn quad_column(i: u32) -> u32 {
    return unit_column(i / 8u, i % 8u);
}

// Behind the last write to x.
fn sum_units(lane: Lane) {
    workgroupBarrier();
    for (var unit = number(lane); unit < UNITS; unit += WG) {
        sh_sums[unit] = column_of(shared_unit(unit)).sums;
    }
    workgroupBarrier();
}

fn shared_unit(unit: u32) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        sh_x[unit], sh_x[UNITS + unit], sh_x[UNITS * 2u + unit], sh_x[UNITS * 3u + unit],
        sh_x[UNITS * 4u + unit], sh_x[UNITS * 5u + unit], sh_x[UNITS * 6u + unit], sh_x[UNITS * 7u + unit],
    );
}

fn column_at(unit: u32) -> Column {
    return Column(shared_unit(unit), sh_sums[unit]);
}
