@group(0) @binding(11) var<storage, read> lora_a: array<LoraVec4>;
