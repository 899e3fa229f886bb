fn limited(row: u32, sum: f32) -> f32 {
    return sum;
}
