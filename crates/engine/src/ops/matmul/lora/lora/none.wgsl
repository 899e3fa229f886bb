// No LoRA.
//#use lora_up
fn compute_lora_down(lane: Lane) {}

fn lora_down_rows(row: u32, lane: Lane) {}
