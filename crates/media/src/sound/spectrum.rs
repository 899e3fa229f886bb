//! The Fourier transform of a short window. Ours: the one length we need is a page of code, and a general library is a minute of
//! compiling and as much wasm as the rest of this crate.

/// Samples of a transform.
pub(super) const LENGTH: usize = 512;
/// Numbers of a spectrum of real samples.
pub(super) const BINS: usize = LENGTH / 2 + 1;

/// Turns and places that all transforms share.
pub(super) struct Spectrum {
    /// Cosines and sines of `−2πi / LENGTH`.
    turns: Vec<(f64, f64)>,
}

impl Spectrum {
    pub(super) fn new() -> Self {
        let angle = |i: usize| -std::f64::consts::TAU * i as f64 / LENGTH as f64;
        let turn = |i: usize| (angle(i).cos(), angle(i).sin());
        Self { turns: (0..LENGTH / 2).map(turn).collect() }
    }

    /// Magnitudes of the frequencies of real samples.
    pub(super) fn magnitudes(&self, samples: &[f64; LENGTH]) -> [f64; BINS] {
        let mut real = [0.0; LENGTH];
        let mut imaginary = [0.0; LENGTH];
        let bits = LENGTH.trailing_zeros();
        for (i, sample) in samples.iter().enumerate() {
            real[i.reverse_bits() >> (usize::BITS - bits)] = *sample;
        }
        let mut half = 1;
        while half < LENGTH {
            let stride = LENGTH / (2 * half);
            for start in (0..LENGTH).step_by(2 * half) {
                for i in 0..half {
                    let (cos, sin) = self.turns[i * stride];
                    let (a, b) = (start + i, start + i + half);
                    let turned =
                        (real[b] * cos - imaginary[b] * sin, real[b] * sin + imaginary[b] * cos);
                    (real[b], imaginary[b]) = (real[a] - turned.0, imaginary[a] - turned.1);
                    (real[a], imaginary[a]) = (real[a] + turned.0, imaginary[a] + turned.1);
                }
            }
            half *= 2;
        }
        std::array::from_fn(|bin| real[bin].hypot(imaginary[bin]))
    }
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, Spectrum};

    #[test]
    fn as_the_definition_has_it() {
        let samples: [f64; LENGTH] = std::array::from_fn(|i| ((i * i) % 37) as f64 / 37.0 - 0.4);
        let fast = Spectrum::new().magnitudes(&samples);
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
