// x in workgroup memory, group by group, so that lanes that read neighbouring pieces read neighbouring words: in the form of the dot
// products, after stage_end. The prologue passes it to stage_two, two neighbouring vec4s at a time.
//#use stage
//#use x_words
override PIECES: u32 = 48u;
// Groups of four in a piece.
override GROUPS: u32 = 8u;
override X_VEC4S: u32 = 384u;
// One over the number of columns, for means.
override PART: f32 = 1.0 / f32(X_VEC4S * 4u);

var<workgroup> sh_x: array<vec4<u32>, X_VEC4S>;
// Statistics of a piece: sums, and where it is quantised its scale.
var<workgroup> sh_pieces: array<vec4<f32>, PIECES>;

// A lane's number in the workgroup.
fn number(lane: Lane) -> u32 {
    return lane.part * LANES + lane.in_part;
}

// vec4s are counted through the pieces: where vec4 i is stored, and its first column.
fn place(i: u32) -> u32 {
    return i % GROUPS * PIECES + i / GROUPS;
}

// For the lanes that have none: some other vec4.
fn inside(i: u32) -> u32 {
    return min(i, X_VEC4S - 1u);
}

// Sums over vec4s past the last one are zero.
fn counted(i: u32, found: f32) -> f32 {
    return select(0.0, found, i < X_VEC4S);
}

// As floats, before x is quantised; zero past the last vec4.
fn set_vec4(i: u32, four: vec4<f32>) {
    if i < X_VEC4S {
        sh_x[place(i)] = bitcast<vec4<u32>>(four);
    }
}

fn get_vec4(i: u32) -> vec4<f32> {
    if i >= X_VEC4S {
        return vec4(0.0);
    }
    return bitcast<vec4<f32>>(sh_x[place(i)]);
}

// Two vec4s in the form of the dot products; the int8 pairs of both take the place of the first.
fn set_quantised(i: u32, one: vec4<f32>, two: vec4<f32>, stats: vec4<f32>) {
    if QUANTISED {
        sh_x[place(i)] = vec4(quantised(one, stats), quantised(two, stats));
    } else {
        set_vec4(i, one);
        set_vec4(i + 1u, two);
    }
}

fn vec4_column(i: u32) -> u32 {
    return unit_column(i / 8u, i % 8u);
}

fn x_vec4(i: u32) -> vec4<f32> {
    return get_vec4(i);
}

fn x_column(i: u32) -> u32 {
    return vec4_column(i);
}

fn word_at(i: u32) -> vec4<u32> {
    return sh_x[i];
}

// Of int8 pairs: sums over the halves of units, and the scale of each half.
fn piece_stats(piece: u32) -> vec4<f32> {
    let stats = sh_pieces[piece];
    if QUANTISED {
        return stats.xyzz;
    }
    return stats;
}
