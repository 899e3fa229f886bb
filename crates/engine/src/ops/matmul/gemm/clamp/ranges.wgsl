// The version of x that a row reads, by its range.
fn version_of(row: u32) -> u32 {
    if row < p.end0 {
        return p.version0;
    }
    return select(p.version2, p.version1, row < p.end1);
}

// A result clamped by the range of its row.
fn clamped(row: u32, sum: f32) -> f32 {
    if row < p.end0 {
        return clamp(sum, p.least0, p.most0);
    }
    if row < p.end1 {
        return clamp(sum, p.least1, p.most1);
    }
    return clamp(sum, p.least2, p.most2);
}
