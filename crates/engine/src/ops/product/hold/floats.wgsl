// x stays floats.
//#use words

// Behind the last write to x.
fn hold(lane: Lane) {
    workgroupBarrier();
    for (var unit = number(lane); unit < PIECES; unit += WG) {
        sh_pieces[unit] = column_of(held_floats(unit, 0u)).sums;
    }
    workgroupBarrier();
}
