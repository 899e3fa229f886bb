// Softcap to -CAP..CAP.
//#use gelu
override CAP: f32 = 30.0;

fn output_of(row: u32, sum: f32) -> f32 {
    return CAP * safe_tanh(sum / CAP);
}
