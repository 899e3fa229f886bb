// No up-projection.
struct LoraLoaded {
    nothing: u32,
}

fn prefetch_lora(turn: u32, lane: Lane) -> LoraLoaded {
    return LoraLoaded();
}

fn prefetch_lora_next(loaded: LoraLoaded, turn: u32, lane: Lane) -> LoraLoaded {
    return loaded;
}

fn lora_sums(loaded: LoraLoaded, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    return vec4(0.0);
}

fn prefetch_up(lane: Lane) -> vec4<f32> {
    return vec4(0.0);
}

fn stage_up(first: vec4<f32>, first_turn: u32, lane: Lane) {}

fn up_rows() -> u32 {
    return 0u;
}
