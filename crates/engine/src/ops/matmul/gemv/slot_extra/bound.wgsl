// The epilogue's input is bound, as in the GEMV, and not read.
@group(0) @binding(5) var<storage, read> long: array<f32>;
