// vec4s are stored as floats, which other lanes may read until stage_end; then one lane computes the statistics of each piece, and if x is
// quantised, one lane quantises two vec4s each.
//#use quantise

fn stage_two(i: u32, one: vec4<f32>, two: vec4<f32>) {
    set_vec4(i, one);
    set_vec4(i + 1u, two);
}

// Called after the last vec4.
fn stage_end(lane: Lane) {
    workgroupBarrier();
    for (var piece = local_index(lane); piece < PIECES; piece += WG) {
        let x = staged_floats(piece, 0u);
        var pair_sums = column_of(x).sums;
        var largest = 0.0;
        if QUANTISED {
            largest = largest_of(x);
        }
        if GROUPS > 8u {
            let other = staged_floats(piece, 8u);
            pair_sums += column_of(other).sums;
            if QUANTISED {
                largest = max(largest, largest_of(other));
            }
        }
        sh_pieces[piece] = stats_of(pair_sums, largest);
    }
    workgroupBarrier();
    if QUANTISED {
        for (var i = local_index(lane) * 2u; i < X_VEC4S; i += WG * 2u) {
            set_quantised(i, get_vec4(i), get_vec4(i + 1u), sh_pieces[i / GROUPS]);
        }
        workgroupBarrier();
    }
}

fn largest_of(x: array<vec4<f32>, 8>) -> f32 {
    let a = max(max(abs(x[0]), abs(x[1])), max(abs(x[2]), abs(x[3])));
    let b = max(max(abs(x[4]), abs(x[5])), max(abs(x[6]), abs(x[7])));
    let four = max(a, b);
    return max(max(four.x, four.y), max(four.z, four.w));
}
