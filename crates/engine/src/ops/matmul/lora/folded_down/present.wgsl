// Q u and P h for a row of A.
fn folded_of(row: u32) -> vec2<f32> {
    if row >= RANK {
        return vec2(0.0);
    }
    let one = FOLDED_AT + row;
    let other = one + FOLDED_ROWS;
    return vec2(a[one / 4u][one % 4u], a[other / 4u][other % 4u]);
}

fn set_folded(row: u32, folded: vec2<f32>, m: f32, n: f32) {
    if row < RANK {
        sh_z[row] = m * (folded.y + n * folded.x);
    }
}
