//! Seeded random numbers: the 32-bit Mersenne Twister and the two conversions of its outputs to uniforms.

use rand_mt::Mt;

use super::SamplingError;

/// A resumable stream of uniforms in [0, 1).
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    twister: Mt,
    outputs: u64,
}

impl Generator {
    /// The stream of a seed.
    pub(crate) fn new(seed: u32) -> Self {
        Self { twister: Mt::new(seed), outputs: 0 }
    }

    /// The stream of a seed after `outputs` outputs.
    ///
    /// More outputs than any session uses are refused: replaying them would take seconds.
    pub(crate) fn resume(seed: u32, outputs: u64) -> Result<Self, SamplingError> {
        const MAX_OUTPUTS: u64 = 1 << 28;
        if outputs > MAX_OUTPUTS {
            return Err(SamplingError::DamagedState {
                field: "random position",
                got: outputs as f64,
            });
        }
        let mut generator = Self::new(seed);
        for _ in 0..outputs {
            generator.next();
        }
        Ok(generator)
    }

    /// Number of outputs used.
    pub(crate) fn outputs(&self) -> u64 {
        self.outputs
    }

    /// A uniform from two outputs, as libstdc++ computes a double: `(a + b·2³²) / 2⁶⁴`.
    pub(crate) fn uniform_f64(&mut self) -> f64 {
        const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;
        let (low, high) = (u64::from(self.next()), u64::from(self.next()));
        let uniform = (low | high << 32) as f64 / 18_446_744_073_709_551_616.0;
        uniform.min(BELOW_ONE)
    }

    /// A uniform from one output, as libstdc++ computes a float: `a / 2³²`.
    pub(crate) fn uniform_f32(&mut self) -> f32 {
        const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
        (self.next() as f32 / 4_294_967_296.0).min(BELOW_ONE)
    }

    fn next(&mut self) -> u32 {
        self.outputs += 1;
        self.twister.next_u32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_uniforms_of_seed_42() {
        let mut generator = Generator::new(42);
        let outputs: Vec<u32> = (0..4).map(|_| generator.next()).collect();
        assert_eq!(outputs, [1608637542, 3421126067, 4083286876, 787846414]);

        let mut generator = Generator::new(42);
        let expected = [
            0.79654298, 0.18343479, 0.779691, 0.59685016, 0.44583276, 0.09997492, 0.45924889,
            0.33370861,
        ];
        for expected in expected {
            let uniform = generator.uniform_f64();
            assert!((uniform - expected).abs() < 1e-8, "{uniform} is not {expected}");
        }
    }

    #[test]
    fn ten_thousandth_output_matches_the_cpp_standard() {
        // The C++ standard gives this value for the default seed.
        let mut generator = Generator::resume(5489, 9_999).expect("few outputs");
        assert_eq!(generator.next(), 4_123_659_995);
        assert_eq!(generator.outputs(), 10_000);
    }

    #[test]
    fn impossible_positions_are_refused() {
        let refused = Generator::resume(1, u64::MAX);
        assert!(matches!(refused, Err(SamplingError::DamagedState { .. })));
    }
}
