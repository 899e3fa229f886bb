@group(0) @binding(8) var<storage, read> lora_a: array<LoraVec4>;
