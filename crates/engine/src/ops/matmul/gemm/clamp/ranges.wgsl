// Rows of a range read the same version of the columns.
fn version_of(row: u32) -> u32 {
    if row < p.end0 {
        return p.version0;
    }
    return select(p.version2, p.version1, row < p.end1);
}

// Rows of a range are clamped alike.
fn limited(row: u32, sum: f32) -> f32 {
    if row < p.end0 {
        return clamp(sum, p.least0, p.most0);
    }
    if row < p.end1 {
        return clamp(sum, p.least1, p.most1);
    }
    return clamp(sum, p.least2, p.most2);
}
