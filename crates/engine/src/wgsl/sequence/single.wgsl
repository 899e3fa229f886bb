// In front of every kernel: what changes per run, and rows beyond 65,535 workgroups.
struct Step {
    position: u32,
    count: u32,
    seed: u32,
    reserved: u32,
}

@group(0) @binding(1) var<uniform> run: Step;
