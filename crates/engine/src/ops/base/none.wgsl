fn base(i: u32) -> f32 {
    return 0.0;
}
