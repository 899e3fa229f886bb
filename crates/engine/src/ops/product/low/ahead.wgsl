// y[r] += sum over i of B[r, i] * z[i],  z = m * (P h + n * Q u): Q u and P h lie after the branch, the norms give m and n
//#use factor
//#use ahead_spot
override RANK: u32 = 16u;
override AHEAD_AT: u32 = 1536u;
// Of all products that it was made for.
override AHEAD_ROWS: u32 = 16u;

var<workgroup> sh_z: array<f32, RANK>;

fn make_low(lane: Lane) {}

fn low_z(i: u32) -> vec4<f32> {
    return vec4(sh_z[i * 4u], sh_z[i * 4u + 1u], sh_z[i * 4u + 2u], sh_z[i * 4u + 3u]);
}

//#use low_rows
