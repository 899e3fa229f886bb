// The sum itself.
fn made_of(row: u32, sum: f32) -> f32 {
    return sum;
}
