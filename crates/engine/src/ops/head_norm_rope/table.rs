//! Cosines and sines of rotary position embedding, computed in f64: those of kernels are too inaccurate at large positions.

/// `[positions, width / 2, 2]`: cosine and sine of `position · base^(-2i / width) / factors[i]` for each pair `i` of a head.
///
/// # Panics
/// If there are factors, but not one per pair.
pub fn rope_table(
    positions: impl IntoIterator<Item = u32>,
    base: f64,
    width: usize,
    factors: Option<&[f32]>,
) -> Vec<f32> {
    let pairs = width / 2;
    if let Some(factors) = factors {
        assert_eq!(factors.len(), pairs, "one factor per pair of a head of {width}");
    }
    let frequency = |i: usize| {
        let factor = factors.map_or(1.0, |factors| f64::from(factors[i]));
        base.powf(-2.0 * i as f64 / width as f64) / factor
    };
    let frequencies: Vec<f64> = (0..pairs).map(frequency).collect();
    let mut table = Vec::new();
    for position in positions {
        for frequency in &frequencies {
            let (sin, cos) = (f64::from(position) * frequency).sin_cos();
            table.extend([cos as f32, sin as f32]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::rope_table;

    #[test]
    fn large_positions_are_exact_and_huge_factors_do_not_rotate() {
        assert_eq!(rope_table(0..1, 1e4, 4, None), [1.0, 0.0, 1.0, 0.0]);
        let far = rope_table(262_143..262_144, 1e6, 4, Some(&[1.0, 1e30]));
        // The first pair rotates by 262143 radians.
        let want = [-0.609_161_5, 0.793_046_2, 1.0, 0.0];
        assert!(far.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{far:?}");
    }
}
