//! The FFT of a short window. Own code: only one length is needed, and a general library costs a minute of compile time and as much wasm
//! as the rest of this crate.

use std::{
    array,
    ops::{Add, Mul, Sub},
};

/// FFT length in samples.
pub(super) const LENGTH: usize = 512;
/// Bins of the spectrum of real samples.
pub(super) const BINS: usize = LENGTH / 2 + 1;
/// Transforms computed side by side, one per lane of a 128-bit SIMD register.
const LANES: usize = 2;
/// Windows that are transformed together: two per transform, as real and imaginary parts.
pub(super) const WINDOWS: usize = 2 * LANES;

/// A sample or magnitude of each window.
pub(super) type Each = [f64; WINDOWS];

/// A real value of each transform.
#[derive(Clone, Copy)]
struct Reals([f64; LANES]);

/// A complex value of each transform.
#[derive(Clone, Copy)]
struct Complex {
    real: Reals,
    imaginary: Reals,
}

/// The values of a stage.
type Values = [Complex; LENGTH];

/// Twiddle factors (cosine, sine) of an angle, twice and three times the angle.
type Twiddles = [(f64, f64); 3];

/// Twiddle factors of the four radix-4 stages; the last stage is radix 2.
pub(super) struct Spectrum {
    stages: [Vec<Twiddles>; 4],
}

impl Spectrum {
    pub(super) fn new() -> Self {
        let stage = |length: usize| {
            let twiddle = |times: usize| {
                let angle = -std::f64::consts::TAU * times as f64 / length as f64;
                (angle.cos(), angle.sin())
            };
            (0..length / 4).map(|i| [twiddle(i), twiddle(2 * i), twiddle(3 * i)]).collect()
        };
        Self { stages: [LENGTH, LENGTH / 4, LENGTH / 16, LENGTH / 64].map(stage) }
    }

    /// Magnitude spectra of windows of real samples.
    pub(super) fn magnitudes(&self, samples: &[Each; LENGTH]) -> [Each; BINS] {
        let values = self.transform(samples);
        let mut magnitudes = [[0.0; WINDOWS]; BINS];
        for (bin, out) in magnitudes.iter_mut().enumerate() {
            // The spectrum of the window in the real part is conjugate-even, that of the imaginary part conjugate-odd.
            let (at, other) = (values[bin], values[(LENGTH - bin) % LENGTH]);
            let (a, b) = (at.real + other.real, at.imaginary - other.imaginary);
            let (c, d) = (at.imaginary + other.imaginary, other.real - at.real);
            let (first, second) = out.split_at_mut(LANES);
            first.copy_from_slice(&Reals::length(a, b).map(|length| 0.5 * length));
            second.copy_from_slice(&Reals::length(c, d).map(|length| 0.5 * length));
        }
        magnitudes
    }

    /// A Stockham FFT: each stage writes in the order the next one reads, so there is no bit reversal.
    fn transform(&self, samples: &[Each; LENGTH]) -> Values {
        let zero = Reals([0.0; LANES]);
        let mut a = [Complex { real: zero, imaginary: zero }; LENGTH];
        for (value, samples) in a.iter_mut().zip(samples) {
            value.real.0.copy_from_slice(&samples[..LANES]);
            value.imaginary.0.copy_from_slice(&samples[LANES..]);
        }
        let mut b = a;
        radix4::<1>(&a, &mut b, &self.stages[0]);
        radix4::<4>(&b, &mut a, &self.stages[1]);
        radix4::<16>(&a, &mut b, &self.stages[2]);
        radix4::<64>(&b, &mut a, &self.stages[3]);
        radix2(&a, &mut b);
        b
    }
}

/// A radix-4 stage: values a quarter of the length apart become neighbours; runs of `STRIDE` share their twiddle factors.
fn radix4<const STRIDE: usize>(from: &Values, to: &mut Values, twiddles: &[Twiddles]) {
    let (from, stride) = (from.as_chunks::<STRIDE>().0, LENGTH / 4 / STRIDE);
    let [a, b, c, d] = [0, 1, 2, 3].map(|quarter| &from[quarter * stride..][..stride]);
    let to = to.as_chunks_mut::<STRIDE>().0.as_chunks_mut::<4>().0;
    for (((((to, twiddles), a), b), c), d) in
        to.iter_mut().zip(twiddles).zip(a).zip(b).zip(c).zip(d)
    {
        for i in 0..STRIDE {
            let (sum, rest) = (a[i] + c[i], a[i] - c[i]);
            let (others, other) = (b[i] + d[i], (b[i] - d[i]).times_minus_i());
            to[0][i] = sum + others;
            to[1][i] = (rest + other).rotated(twiddles[0]);
            to[2][i] = (sum - others).rotated(twiddles[1]);
            to[3][i] = (rest - other).rotated(twiddles[2]);
        }
    }
}

/// The last stage, radix 2: sums and differences of both radix2.
fn radix2(from: &Values, to: &mut Values) {
    let (a, b) = from.split_at(LENGTH / 2);
    let (sums, differences) = to.split_at_mut(LENGTH / 2);
    for i in 0..LENGTH / 2 {
        (sums[i], differences[i]) = (a[i] + b[i], a[i] - b[i]);
    }
}

impl Complex {
    /// Rotated by an angle.
    fn rotated(self, (cos, sin): (f64, f64)) -> Self {
        let Self { real, imaginary } = self;
        Self { real: real * cos - imaginary * sin, imaginary: real * sin + imaginary * cos }
    }

    /// Multiplied by −i.
    fn times_minus_i(self) -> Self {
        Self { real: self.imaginary, imaginary: self.real * -1.0 }
    }
}

impl Reals {
    /// Magnitudes √(a² + b²).
    fn length(a: Self, b: Self) -> [f64; LANES] {
        array::from_fn(|lane| (a.0[lane] * a.0[lane] + b.0[lane] * b.0[lane]).sqrt())
    }
}

impl Add for Reals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }
}

impl Sub for Reals {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(array::from_fn(|lane| self.0[lane] - other.0[lane]))
    }
}

impl Mul<f64> for Reals {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self(self.0.map(|value| value * times))
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { real: self.real + other.real, imaginary: self.imaginary + other.imaginary }
    }
}

impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { real: self.real - other.real, imaginary: self.imaginary - other.imaginary }
    }
}

#[cfg(test)]
mod tests {
    use super::{Each, LENGTH, Spectrum, array};

    #[test]
    fn equals_the_definition_of_the_dft() {
        let sample = |i: usize, w: usize| ((i * i * (w + 1) + 7 * w) % 37) as f64 / 37.0 - 0.4;
        let samples: [Each; LENGTH] = array::from_fn(|i| array::from_fn(|w| sample(i, w)));
        let magnitudes = Spectrum::new().magnitudes(&samples);
        for bin in [0, 1, 2, 57, 128, 255, 256] {
            let angle = |i: usize| std::f64::consts::TAU * (bin * i) as f64 / LENGTH as f64;
            for (w, fast) in magnitudes[bin].iter().enumerate() {
                let sum = |wave: fn(f64) -> f64| -> f64 {
                    (0..LENGTH).map(|i| sample(i, w) * wave(angle(i))).sum()
                };
                let slow = sum(f64::cos).hypot(sum(f64::sin));
                assert!((fast - slow).abs() < 1e-9, "bin {bin}: {fast} is not {slow}");
            }
        }
    }
}
