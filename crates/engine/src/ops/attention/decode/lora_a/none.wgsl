// No LoRA A is fused into this dispatch.
struct LoraPrefetch {
    nothing: u32,
}

fn prefetch_lora(head: u32, lane: Lane) -> LoraPrefetch {
    return LoraPrefetch();
}

fn keep_for_lora(dim4: u32, sum: vec4<f32>) {
}

fn lora_dot_head(prefetched: LoraPrefetch, place: u32, number: u32, lane: Lane) {
}

fn lora_dot_own_value(block: u32, kv_head: u32, lane: Lane) {
}
