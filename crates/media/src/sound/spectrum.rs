//! The Fourier transform of a short window. Ours: the one length we need is a page of code, and a general library is a minute of
//! compiling and as much wasm as the rest of this crate.

/// Samples of a transform.
pub(super) const LENGTH: usize = 512;
/// Numbers of a spectrum of real samples.
pub(super) const BINS: usize = LENGTH / 2 + 1;

/// Turns that all transforms share.
pub(super) struct Spectrum {
    /// For each stage, the cosines and sines of its turns.
    stages: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Spectrum {
    pub(super) fn new() -> Self {
        let stage = |half: usize| {
            let angle = |i: usize| -std::f64::consts::PI * i as f64 / half as f64;
            (0..half).map(|i| (angle(i).cos(), angle(i).sin())).unzip()
        };
        Self { stages: (0..LENGTH.trailing_zeros()).map(|bit| stage(1 << bit)).collect() }
    }

    /// Magnitudes of the frequencies of two windows of real samples: one transform takes both, as real and imaginary parts.
    pub(super) fn magnitudes(
        &self,
        first: &[f64; LENGTH],
        second: &[f64; LENGTH],
    ) -> [[f64; BINS]; 2] {
        let (real, imaginary) = self.transform(first, second);
        let mut made = [[0.0; BINS]; 2];
        for bin in 0..BINS {
            // What the real parts made is even, what the imaginary ones made is odd.
            let other = (LENGTH - bin) % LENGTH;
            let (a, b) = (real[bin] + real[other], imaginary[bin] - imaginary[other]);
            let (c, d) = (imaginary[bin] + imaginary[other], real[other] - real[bin]);
            made[0][bin] = 0.5 * (a * a + b * b).sqrt();
            made[1][bin] = 0.5 * (c * c + d * d).sqrt();
        }
        made
    }

    fn transform(
        &self,
        first: &[f64; LENGTH],
        second: &[f64; LENGTH],
    ) -> ([f64; LENGTH], [f64; LENGTH]) {
        let (mut real, mut imaginary) = ([0.0; LENGTH], [0.0; LENGTH]);
        let bits = LENGTH.trailing_zeros();
        for i in 0..LENGTH {
            let place = i.reverse_bits() >> (usize::BITS - bits);
            (real[place], imaginary[place]) = (first[i], second[i]);
        }
        for (cosines, sines) in &self.stages {
            let half = cosines.len();
            let both = real.chunks_exact_mut(2 * half).zip(imaginary.chunks_exact_mut(2 * half));
            for (real, imaginary) in both {
                let (ar, br) = real.split_at_mut(half);
                let (ai, bi) = imaginary.split_at_mut(half);
                for i in 0..half {
                    let (cos, sin) = (cosines[i], sines[i]);
                    let turned = (br[i] * cos - bi[i] * sin, br[i] * sin + bi[i] * cos);
                    (br[i], bi[i]) = (ar[i] - turned.0, ai[i] - turned.1);
                    (ar[i], ai[i]) = (ar[i] + turned.0, ai[i] + turned.1);
                }
            }
        }
        (real, imaginary)
    }
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, Spectrum};

    #[test]
    fn as_the_definition_has_it() {
        let first: [f64; LENGTH] = std::array::from_fn(|i| ((i * i) % 37) as f64 / 37.0 - 0.4);
        let second: [f64; LENGTH] = std::array::from_fn(|i| ((i * 7) % 61) as f64 / 61.0 - 0.7);
        let fast = Spectrum::new().magnitudes(&first, &second);
        for (fast, samples) in fast.iter().zip([first, second]) {
            for bin in [0, 1, 2, 57, 128, 255, 256] {
                let angle = |i: usize| std::f64::consts::TAU * (bin * i) as f64 / LENGTH as f64;
                let sum = |wave: fn(f64) -> f64| -> f64 {
                    samples.iter().enumerate().map(|(i, x)| x * wave(angle(i))).sum()
                };
                let slow = sum(f64::cos).hypot(sum(f64::sin));
                assert!((fast[bin] - slow).abs() < 1e-9, "bin {bin}: {} is not {slow}", fast[bin]);
            }
        }
    }
}
