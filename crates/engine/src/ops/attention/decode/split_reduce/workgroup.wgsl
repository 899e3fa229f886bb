// Reduces through workgroup memory: works on every device.
fn reduce_splits(found: Found, number: u32) {
    sh_sum[number] = found.sum;
    sh_about[number] = vec2(found.largest, found.weights);
    workgroupBarrier();
}
