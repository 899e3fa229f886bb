// Kept between -CAP and CAP.
//#use activation
override CAP: f32 = 30.0;

fn made_of(row: u32, sum: f32) -> f32 {
    return CAP * safe_tanh(sum / CAP);
}
