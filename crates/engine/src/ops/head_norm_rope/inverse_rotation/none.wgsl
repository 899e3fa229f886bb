fn rotated_back(token: u32, i: u32, pair: vec2<f32>) -> vec2<f32> {
    return pair;
}
