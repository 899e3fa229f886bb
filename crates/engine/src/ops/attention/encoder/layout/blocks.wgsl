// As f16, in blocks of 16 tokens by 16 elements, 512 bytes each: matrix units load a block at once. Blocks of values are transposed:
// 16 elements by 16 tokens.
enable f16;
@group(0) @binding(5) var<storage, read_write> x: array<vec4<f16>>;

fn store(head: vec4<f32>, start: u32, lane: u32, kind: u32) {
    let dim4 = lane % DIM4;
    if kind != VALUES {
        x[start + dim4 / 4u * 64u + lane / DIM4 * 4u + dim4 % 4u] = to_f16(head);
        return;
    }
    sh_numbers[lane] = head;
    workgroupBarrier();
    // The lane's element of the head, of four tokens.
    let number = lane / 4u;
    let at = lane % 4u * 4u * DIM4 + number / 4u;
    let i = number % 4u;
    let transposed = vec4(sh_numbers[at][i], sh_numbers[at + DIM4][i], sh_numbers[at + 2u * DIM4][i], sh_numbers[at + 3u * DIM4][i]);
    x[start + lane] = to_f16(transposed);
}

fn to_f16(numbers: vec4<f32>) -> vec4<f16> {
    return vec4<f16>(clamp(numbers, vec4(-65504.0), vec4(65504.0)));
}
