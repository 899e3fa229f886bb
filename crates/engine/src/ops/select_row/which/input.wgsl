// That of a given number.
@group(0) @binding(4) var<storage, read> number: array<u32>;

fn which() -> u32 {
    return number[0];
}
