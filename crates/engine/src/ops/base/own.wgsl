fn base(i: u32) -> f32 {
    return y[i];
}
