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

    /// Magnitudes of the frequencies of two windows of real samples: one transform of complex numbers does both.
    pub(super) fn magnitudes(&self, windows: [&[f64; LENGTH]; 2]) -> [[f64; BINS]; 2] {
        let mut real = [0.0; LENGTH];
        let mut imaginary = [0.0; LENGTH];
        let bits = LENGTH.trailing_zeros();
        for (i, (first, second)) in windows[0].iter().zip(windows[1]).enumerate() {
            let place = i.reverse_bits() >> (usize::BITS - bits);
            (real[place], imaginary[place]) = (*first, *second);
        }
        let mut half = 1;
        while half < LENGTH {
            self.stage(&mut real, &mut imaginary, half);
            half *= 2;
        }
        // What is even about the middle belongs to the first window, what is odd to the second.
        let at = |bin: usize| {
            let other = (LENGTH - bin) % LENGTH;
            (real[bin], imaginary[bin], real[other], imaginary[other])
        };
        let size = |a: f64, b: f64| (a * a + b * b).sqrt() / 2.0;
        let first = std::array::from_fn(|bin| {
            let (a, b, c, d) = at(bin);
            size(a + c, b - d)
        });
        let second = std::array::from_fn(|bin| {
            let (a, b, c, d) = at(bin);
            size(b + d, c - a)
        });
        [first, second]
    }

    /// Joins transforms of `half` numbers into those of twice as many.
    fn stage(&self, real: &mut [f64; LENGTH], imaginary: &mut [f64; LENGTH], half: usize) {
        let turns = self.turns.iter().step_by(LENGTH / (2 * half));
        let pairs = real.chunks_exact_mut(2 * half).zip(imaginary.chunks_exact_mut(2 * half));
        for (real, imaginary) in pairs {
            let (real, real_odd) = real.split_at_mut(half);
            let (imaginary, imaginary_odd) = imaginary.split_at_mut(half);
            let even = real.iter_mut().zip(imaginary);
            let odd = real_odd.iter_mut().zip(imaginary_odd);
            for (((a, b), (c, d)), (cos, sin)) in even.zip(odd).zip(turns.clone()) {
                let turned = (*c * cos - *d * sin, *c * sin + *d * cos);
                (*c, *d) = (*a - turned.0, *b - turned.1);
                (*a, *b) = (*a + turned.0, *b + turned.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, Spectrum};

    #[test]
    fn as_the_definition_has_it() {
        let samples: [f64; LENGTH] = std::array::from_fn(|i| ((i * i) % 37) as f64 / 37.0 - 0.4);
        let quiet: [f64; LENGTH] = std::array::from_fn(|i| ((i * 7) % 11) as f64 / 1e4);
        let fast = Spectrum::new().magnitudes([&samples, &quiet]);
        for (samples, fast, bin) in [0, 1, 2, 57, 128, 255, 256]
            .into_iter()
            .flat_map(|bin| [(&samples, fast[0], bin), (&quiet, fast[1], bin)])
        {
            let angle = |i: usize| std::f64::consts::TAU * (bin * i) as f64 / LENGTH as f64;
            let sum = |wave: fn(f64) -> f64| -> f64 {
                samples.iter().enumerate().map(|(i, x)| x * wave(angle(i))).sum()
            };
            let slow = sum(f64::cos).hypot(sum(f64::sin));
            assert!((fast[bin] - slow).abs() < 1e-9, "bin {bin}: {} is not {slow}", fast[bin]);
        }
    }
}
