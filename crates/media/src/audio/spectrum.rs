//! The Fourier transform of a short window. Ours: the one length we need is a page of code, and a general library is a minute of
//! compiling and as much wasm as the rest of this crate.

use std::{
    array,
    ops::{Add, Mul, Sub},
};

/// Samples of a transform.
pub(super) const LENGTH: usize = 512;
/// Numbers of a spectrum of real samples.
pub(super) const BINS: usize = LENGTH / 2 + 1;
/// Transforms side by side: a register of wasm or SSE2 holds a number of each.
const LANES: usize = 2;
/// Windows that are transformed together: two by each transform, as real and imaginary parts.
pub(super) const WINDOWS: usize = 2 * LANES;

/// A sample or a magnitude of each window, side by side.
pub(super) type Each = [f64; WINDOWS];

/// A real number of each transform.
#[derive(Clone, Copy)]
struct Reals([f64; LANES]);

/// A number of each transform.
#[derive(Clone, Copy)]
struct Complex {
    real: Reals,
    imaginary: Reals,
}

/// Numbers of all places.
type Numbers = [Complex; LENGTH];

/// Cosine and sine of an angle, of twice the angle and of three times.
type Turns = [(f64, f64); 3];

/// Turns that all transforms share, stage by stage: four of them make quarters, a last one halves.
pub(super) struct Spectrum {
    stages: [Vec<Turns>; 4],
}

impl Spectrum {
    pub(super) fn new() -> Self {
        let stage = |length: usize| {
            let turn = |times: usize| {
                let angle = -std::f64::consts::TAU * times as f64 / length as f64;
                (angle.cos(), angle.sin())
            };
            (0..length / 4).map(|i| [turn(i), turn(2 * i), turn(3 * i)]).collect()
        };
        Self { stages: [LENGTH, LENGTH / 4, LENGTH / 16, LENGTH / 64].map(stage) }
    }

    /// Magnitudes of the frequencies of windows of real samples.
    pub(super) fn magnitudes(&self, samples: &[Each; LENGTH]) -> [Each; BINS] {
        let numbers = self.transform(samples);
        let mut made = [[0.0; WINDOWS]; BINS];
        for (bin, made) in made.iter_mut().enumerate() {
            // What the real parts made is even, what the imaginary ones made is odd.
            let (at, other) = (numbers[bin], numbers[(LENGTH - bin) % LENGTH]);
            let (a, b) = (at.real + other.real, at.imaginary - other.imaginary);
            let (c, d) = (at.imaginary + other.imaginary, other.real - at.real);
            let (first, second) = made.split_at_mut(LANES);
            first.copy_from_slice(&Reals::length(a, b).map(|length| 0.5 * length));
            second.copy_from_slice(&Reals::length(c, d).map(|length| 0.5 * length));
        }
        made
    }

    /// Stockham's way: each stage writes what the next one reads in order, so that nothing is left to be sorted.
    fn transform(&self, samples: &[Each; LENGTH]) -> Numbers {
        let none = Reals([0.0; LANES]);
        let mut a = [Complex { real: none, imaginary: none }; LENGTH];
        for (number, samples) in a.iter_mut().zip(samples) {
            number.real.0.copy_from_slice(&samples[..LANES]);
            number.imaginary.0.copy_from_slice(&samples[LANES..]);
        }
        let mut b = a;
        quarters::<1>(&a, &mut b, &self.stages[0]);
        quarters::<4>(&b, &mut a, &self.stages[1]);
        quarters::<16>(&a, &mut b, &self.stages[2]);
        quarters::<64>(&b, &mut a, &self.stages[3]);
        halves(&a, &mut b);
        b
    }
}

/// Four numbers of the places a quarter of all apart become four neighbours; `STRIDE` of them are turned alike.
fn quarters<const STRIDE: usize>(from: &Numbers, to: &mut Numbers, turns: &[Turns]) {
    let (from, apart) = (from.as_chunks::<STRIDE>().0, LENGTH / 4 / STRIDE);
    let [a, b, c, d] = [0, 1, 2, 3].map(|quarter| &from[quarter * apart..][..apart]);
    let to = to.as_chunks_mut::<STRIDE>().0.as_chunks_mut::<4>().0;
    for (((((to, turns), a), b), c), d) in to.iter_mut().zip(turns).zip(a).zip(b).zip(c).zip(d) {
        for i in 0..STRIDE {
            let (sum, rest) = (a[i] + c[i], a[i] - c[i]);
            let (others, other) = (b[i] + d[i], (b[i] - d[i]).back());
            to[0][i] = sum + others;
            to[1][i] = (rest + other).turned(turns[0]);
            to[2][i] = (sum - others).turned(turns[1]);
            to[3][i] = (rest - other).turned(turns[2]);
        }
    }
}

/// The last stage: sums and differences of both halves.
fn halves(from: &Numbers, to: &mut Numbers) {
    let (a, b) = from.split_at(LENGTH / 2);
    let (sums, differences) = to.split_at_mut(LENGTH / 2);
    for i in 0..LENGTH / 2 {
        (sums[i], differences[i]) = (a[i] + b[i], a[i] - b[i]);
    }
}

impl Complex {
    /// Turned by an angle.
    fn turned(self, (cos, sin): (f64, f64)) -> Self {
        let Self { real, imaginary } = self;
        Self { real: real * cos - imaginary * sin, imaginary: real * sin + imaginary * cos }
    }

    /// Turned back by a right angle.
    fn back(self) -> Self {
        Self { real: self.imaginary, imaginary: self.real * -1.0 }
    }
}

impl Reals {
    /// Of the vectors with these two parts.
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
        Self(self.0.map(|number| number * times))
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
    fn as_the_definition_has_it() {
        let sample = |i: usize, w: usize| ((i * i * (w + 1) + 7 * w) % 37) as f64 / 37.0 - 0.4;
        let samples: [Each; LENGTH] = array::from_fn(|i| array::from_fn(|w| sample(i, w)));
        let made = Spectrum::new().magnitudes(&samples);
        for bin in [0, 1, 2, 57, 128, 255, 256] {
            let angle = |i: usize| std::f64::consts::TAU * (bin * i) as f64 / LENGTH as f64;
            for (w, fast) in made[bin].iter().enumerate() {
                let sum = |wave: fn(f64) -> f64| -> f64 {
                    (0..LENGTH).map(|i| sample(i, w) * wave(angle(i))).sum()
                };
                let slow = sum(f64::cos).hypot(sum(f64::sin));
                assert!((fast - slow).abs() < 1e-9, "bin {bin}: {fast} is not {slow}");
            }
        }
    }
}
