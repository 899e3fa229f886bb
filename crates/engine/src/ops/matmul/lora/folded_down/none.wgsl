// No folded down-projection.
fn folded_of(row: u32) -> vec2<f32> {
    return vec2(0.0);
}

fn set_folded(row: u32, folded: vec2<f32>, m: f32, n: f32) {}
