// x lies in workgroup memory, group by group, so that lanes that read neighbouring pieces read neighbouring words: as the products want
// it, when all is held. The part that makes x gives it to hold_two, two neighbouring quads at a time.
//#use hold
//#use words
override PIECES: u32 = 48u;
// Groups of four in a piece.
override GROUPS: u32 = 8u;
override QUADS: u32 = 384u;
// One of all columns, for means.
override PART: f32 = 1.0 / f32(QUADS * 4u);

var<workgroup> sh_x: array<vec4<u32>, QUADS>;
// What the products want to know of a piece.
var<workgroup> sh_pieces: array<vec4<f32>, PIECES>;

// A lane's number in the workgroup.
fn number(lane: Lane) -> u32 {
    return lane.part * LANES + lane.in_part;
}

// Quads are counted through the pieces: where quad i lies, and its first column.
fn place(i: u32) -> u32 {
    return i % GROUPS * PIECES + i / GROUPS;
}

// For the lanes that have none: some other quad.
fn inside(i: u32) -> u32 {
    return min(i, QUADS - 1u);
}

// What is found of quads past the last one does not count.
fn counted(i: u32, found: f32) -> f32 {
    return select(0.0, found, i < QUADS);
}

// As floats, where x is not held yet; past the last quad there is nothing.
fn set_quad(i: u32, quad: vec4<f32>) {
    if i < QUADS {
        sh_x[place(i)] = bitcast<vec4<u32>>(quad);
    }
}

fn get_quad(i: u32) -> vec4<f32> {
    if i >= QUADS {
        return vec4(0.0);
    }
    return bitcast<vec4<f32>>(sh_x[place(i)]);
}

// Two quads in the form that products want; digits of both take the place of the first.
fn set_formed(i: u32, one: vec4<f32>, two: vec4<f32>, known: vec4<f32>) {
    if SCALED {
        sh_x[place(i)] = vec4(formed(one, known), formed(two, known));
    } else {
        set_quad(i, one);
        set_quad(i + 1u, two);
    }
}

fn quad_column(i: u32) -> u32 {
    return unit_column(i / 8u, i % 8u);
}

fn x_quad(i: u32) -> vec4<f32> {
    return get_quad(i);
}

fn x_column(i: u32) -> u32 {
    return quad_column(i);
}

fn word_at(i: u32) -> vec4<u32> {
    return sh_x[i];
}

// Of digits: sums over the halves of units, and what a one stands for in each of them.
fn about_piece(piece: u32) -> vec4<f32> {
    let known = sh_pieces[piece];
    if SCALED {
        return known.xyzz;
    }
    return known;
}
