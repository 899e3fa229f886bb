// Adds the up-projection of the token's adapter to the sums of a team's rows: each lane to those of its outputs.
//#use slot_sum
// Rows of a slot of B.
override SLOT_ROWS: u32 = 1u;

fn with_slot_lora(sums: vec4<f32>, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    var all = sums;
    let adapter = slot_adapter();
    if adapter > 0u {
        let first = (adapter - 1u) * SLOT_ROWS + p.first_row;
        for (var i = lane.index; i < results(); i += LANES * SPLIT) {
            for (var j = i; j < ROWS; j += results()) {
                all[j] += slot_sum(first + rows[j]);
            }
        }
    }
    return all;
}
