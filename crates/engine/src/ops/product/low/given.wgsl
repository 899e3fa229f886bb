// y[r] += sum over i of B[r, i] * z[i], where z was made before
//#use factor
//#use spot
alias LowFirst = vec4<f32>;

fn make_low(lane: Lane) {}

fn low_z(i: u32) -> vec4<f32> {
    return low_first[i];
}

//#use low_rows
