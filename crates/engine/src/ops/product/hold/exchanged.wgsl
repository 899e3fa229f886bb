// The quads of a piece are at neighbouring lanes of a subgroup: what is known of a piece is exchanged, and each quad is written once, in
// the form that products want.
//#use form

// All lanes call it for quads WG apart, those behind the last one too: lanes that exchange must be there.
fn hold_quad(i: u32, quad: vec4<f32>) {
    // Sums over pairs of groups; where pieces have two units, over those of both.
    var pair = dot(quad, vec4(1.0));
    pair += subgroupShuffleXor(pair, 1u);
    if GROUPS > 8u {
        pair += subgroupShuffleXor(pair, 8u);
    }
    let pairs = vec2(pair, subgroupShuffleXor(pair, 2u));
    // In order for the first lane of a piece, which writes them.
    let pair_sums = vec4(pairs, subgroupShuffleXor(pairs, 4u));
    var largest = 0.0;
    if SCALED {
        let sizes = abs(quad);
        largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
        largest = max(largest, subgroupShuffleXor(largest, 1u));
        largest = max(largest, subgroupShuffleXor(largest, 2u));
        largest = max(largest, subgroupShuffleXor(largest, 4u));
        if GROUPS > 8u {
            largest = max(largest, subgroupShuffleXor(largest, 8u));
        }
    }
    let known = known_of(pair_sums, largest);
    if i < QUADS {
        sh_x[place(i)] = formed(quad, known);
        if i % GROUPS == 0u {
            sh_pieces[i / GROUPS] = known;
        }
    }
}

// Behind the last quad.
fn hold_all(lane: Lane) {
    workgroupBarrier();
}
