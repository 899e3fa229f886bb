// What the begin made is written down by the first workgroup; each lane takes what it wrote itself.
//#use keep_at

fn keep_x(first_turn: u32, lane: Lane) {
    if first_turn == 0u {
        for (var i = number(lane); i < QUADS; i += WG) {
            kept[(token * p.width + quad_column(i)) / 4u] = get_quad(i);
        }
    }
}
