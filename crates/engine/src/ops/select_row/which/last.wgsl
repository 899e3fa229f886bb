// The row of the step's last token.
fn which() -> u32 {
    return max(run.count, 1u) - 1u;
}
