// The step of a pass over one sequence: the parameters that change per pass.
struct Step {
    position: u32,
    count: u32,
    seed: u32,
    reserved: u32,
}

@group(0) @binding(1) var<uniform> run: Step;
