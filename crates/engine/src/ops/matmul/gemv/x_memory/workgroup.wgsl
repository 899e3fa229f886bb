// x in workgroup memory, vec4 by vec4 of all pieces, so that lanes with neighbouring pieces read neighbouring words; after stage_end in the
// form of the dot products. The prologue passes it to stage_two, two adjacent vec4s at a time.
//#use stage
//#use x_words
override PIECES: u32 = 48u;
// vec4s per piece.
override GROUPS: u32 = 8u;
override X_VEC4S: u32 = 384u;
// One over the number of columns, for means.
override PART: f32 = 1.0 / f32(X_VEC4S * 4u);

var<workgroup> sh_x: array<vec4<u32>, X_VEC4S>;
// Statistics of a piece: sums, and if x is quantised its scale.
var<workgroup> sh_pieces: array<vec4<f32>, PIECES>;

// A lane's index in the workgroup.
fn local_index(lane: Lane) -> u32 {
    return lane.part * LANES + lane.in_part;
}

// Where vec4 i, counted through the pieces, is stored.
fn vec4_slot(i: u32) -> u32 {
    return i % GROUPS * PIECES + i / GROUPS;
}

// An index in range, for lanes past the last vec4.
fn clamp_index(i: u32) -> u32 {
    return min(i, X_VEC4S - 1u);
}

// A sum, or zero past the last vec4.
fn valid_or_zero(i: u32, sum: f32) -> f32 {
    return select(0.0, sum, i < X_VEC4S);
}

// Stores a vec4 as f32, before x is quantised.
fn set_vec4(i: u32, four: vec4<f32>) {
    if i < X_VEC4S {
        sh_x[vec4_slot(i)] = bitcast<vec4<u32>>(four);
    }
}

fn get_vec4(i: u32) -> vec4<f32> {
    if i >= X_VEC4S {
        return vec4(0.0);
    }
    return bitcast<vec4<f32>>(sh_x[vec4_slot(i)]);
}

// Stores two vec4s in the form of the dot products; the int8 pairs of both are stored at the first one.
fn set_quantised(i: u32, one: vec4<f32>, two: vec4<f32>, stats: vec4<f32>) {
    if QUANTISED {
        sh_x[vec4_slot(i)] = vec4(quantised(one, stats), quantised(two, stats));
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

// Statistics of a piece; of int8 pairs: sums over the halves of units, and the scale for each half.
fn piece_stats(piece: u32) -> vec4<f32> {
    let stats = sh_pieces[piece];
    if QUANTISED {
        return stats.xyzz;
    }
    return stats;
}
