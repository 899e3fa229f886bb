// Reduces LANES lanes by subgroup operations first, so that less data goes through workgroup memory.
fn reduce_splits(found: Found, number: u32) {
    let largest = subgroupMax(found.largest);
    let factor = exp(found.largest - largest);
    var sum = factor * found.sum;
    var weights = factor * found.weights;
    for (var step = SLICE; step < LANES; step *= 2u) {
        sum = sum + subgroupShuffleXor(sum, step);
        weights = weights + subgroupShuffleXor(weights, step);
    }
    let kept = min(SLICE, LANES);
    if number % LANES < kept {
        let slot = number / LANES * kept + number % LANES;
        sh_sum[slot] = sum;
        sh_about[slot] = vec2(largest, weights);
    }
    workgroupBarrier();
}
