//! Random numbers for canvases, reproducible on every platform.

/// SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniformly distributed tokens.
    pub(super) fn ids(&mut self, count: usize, vocabulary: usize) -> Vec<u32> {
        // Multiply and shift: unlike a remainder, this does not favour low ids.
        let id = |bits: u64| (((bits >> 32) * vocabulary as u64) >> 32) as u32;
        (0..count).map(|_| id(self.next())).collect()
    }

    /// Uniform values in [0, 1).
    pub(super) fn uniforms(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.next() >> 40) as f32 / (1u32 << 24) as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn values_are_in_range_and_reproducible() {
        let (ids, uniforms) = (Random::new(7).ids(1000, 640), Random::new(7).uniforms(1000));
        assert!(ids.iter().all(|id| *id < 640) && ids.iter().any(|id| *id > 600));
        assert!(uniforms.iter().all(|x| (0.0..1.0).contains(x)));
        let mean = uniforms.iter().sum::<f32>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
        assert_eq!(ids, Random::new(7).ids(1000, 640));
        assert_ne!(ids, Random::new(8).ids(1000, 640));
    }
}
