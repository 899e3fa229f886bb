fn weight(j: u32) -> f32 {
    return 1.0;
}
