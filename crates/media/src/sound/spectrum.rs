//! The Fourier transform of a short window. Ours: the one length we need is a page of code, and a general library is a minute of
//! compiling and as much wasm as the rest of this crate.

/// Samples of a transform.
pub(super) const LENGTH: usize = 512;
/// Numbers of a spectrum of real samples.
pub(super) const BINS: usize = LENGTH / 2 + 1;
/// Windows that are transformed together: two by each transform, as real and imaginary parts.
pub(super) const WINDOWS: usize = 2 * LANES;
/// Transforms side by side, so that what is computed for neighbours lies together.
const LANES: usize = 2;

/// Numbers of all transforms, those of a place side by side.
#[derive(Clone)]
struct Numbers {
    real: [f64; LENGTH * LANES],
    imaginary: [f64; LENGTH * LANES],
}

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
    pub(super) fn magnitudes(&self, windows: &[[f64; LENGTH]; WINDOWS]) -> [[f64; BINS]; WINDOWS] {
        let Numbers { real, imaginary } = self.transform(windows);
        let mut made = [[0.0; BINS]; WINDOWS];
        for (lane, [first, second]) in made.as_chunks_mut().0.iter_mut().enumerate() {
            for (bin, (first, second)) in first.iter_mut().zip(second).enumerate() {
                // What the real parts made is even, what the imaginary ones made is odd.
                let (at, other) = (bin * LANES + lane, (LENGTH - bin) % LENGTH * LANES + lane);
                let (a, b) = (real[at] + real[other], imaginary[at] - imaginary[other]);
                let (c, d) = (imaginary[at] + imaginary[other], real[other] - real[at]);
                *first = 0.5 * (a * a + b * b).sqrt();
                *second = 0.5 * (c * c + d * d).sqrt();
            }
        }
        made
    }

    /// Stockham's way: each stage writes what the next one reads in order, so that nothing is left to be sorted.
    fn transform(&self, windows: &[[f64; LENGTH]; WINDOWS]) -> Numbers {
        let mut a = Numbers { real: [0.0; LENGTH * LANES], imaginary: [0.0; LENGTH * LANES] };
        for (lane, [first, second]) in windows.as_chunks().0.iter().enumerate() {
            for (i, (first, second)) in first.iter().zip(second).enumerate() {
                (a.real[i * LANES + lane], a.imaginary[i * LANES + lane]) = (*first, *second);
            }
        }
        let mut b = a.clone();
        quarters::<LANES>(&a, &mut b, &self.stages[0]);
        quarters::<{ 4 * LANES }>(&b, &mut a, &self.stages[1]);
        quarters::<{ 16 * LANES }>(&a, &mut b, &self.stages[2]);
        quarters::<{ 64 * LANES }>(&b, &mut a, &self.stages[3]);
        halves(&a.real, &mut b.real);
        halves(&a.imaginary, &mut b.imaginary);
        b
    }
}

/// Four numbers of the places a quarter of all apart become four neighbours; `STRIDE` of them are turned alike.
fn quarters<const STRIDE: usize>(from: &Numbers, to: &mut Numbers, turns: &[Turns]) {
    let real = from.real.as_chunks::<STRIDE>().0;
    let imaginary = from.imaginary.as_chunks::<STRIDE>().0;
    let to_real = to.real.as_chunks_mut::<STRIDE>().0.as_chunks_mut::<4>().0;
    let to_imaginary = to.imaginary.as_chunks_mut::<STRIDE>().0.as_chunks_mut::<4>().0;
    let places = to_real.iter_mut().zip(to_imaginary).zip(turns).enumerate();
    for (i, ((to_real, to_imaginary), turns)) in places {
        let at = |quarter: usize| quarter * turns_of::<STRIDE>() + i;
        let [ar, br, cr, dr] = [0, 1, 2, 3].map(|quarter| &real[at(quarter)]);
        let [ai, bi, ci, di] = [0, 1, 2, 3].map(|quarter| &imaginary[at(quarter)]);
        for q in 0..STRIDE {
            let (sum, rest) = ((ar[q] + cr[q], ai[q] + ci[q]), (ar[q] - cr[q], ai[q] - ci[q]));
            let (others, other) = ((br[q] + dr[q], bi[q] + di[q]), (br[q] - dr[q], bi[q] - di[q]));
            let made = [
                turned((rest.0 + other.1, rest.1 - other.0), turns[0]),
                turned((sum.0 - others.0, sum.1 - others.1), turns[1]),
                turned((rest.0 - other.1, rest.1 + other.0), turns[2]),
            ];
            (to_real[0][q], to_imaginary[0][q]) = (sum.0 + others.0, sum.1 + others.1);
            (to_real[1][q], to_imaginary[1][q]) = made[0];
            (to_real[2][q], to_imaginary[2][q]) = made[1];
            (to_real[3][q], to_imaginary[3][q]) = made[2];
        }
    }
}

/// Turns of a stage whose neighbours are `STRIDE` numbers.
const fn turns_of<const STRIDE: usize>() -> usize {
    LENGTH * LANES / 4 / STRIDE
}

fn turned((real, imaginary): (f64, f64), (cos, sin): (f64, f64)) -> (f64, f64) {
    (real * cos - imaginary * sin, real * sin + imaginary * cos)
}

/// The last stage: sums and differences of both halves.
fn halves(from: &[f64; LENGTH * LANES], to: &mut [f64; LENGTH * LANES]) {
    let (a, b) = from.split_at(LENGTH * LANES / 2);
    let (sums, differences) = to.split_at_mut(LENGTH * LANES / 2);
    for i in 0..LENGTH * LANES / 2 {
        (sums[i], differences[i]) = (a[i] + b[i], a[i] - b[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, Spectrum, WINDOWS};

    #[test]
    fn as_the_definition_has_it() {
        let window = |w: usize| {
            std::array::from_fn(|i| ((i * i * (w + 1) + 7 * w) % 37) as f64 / 37.0 - 0.4)
        };
        let windows: [[f64; LENGTH]; WINDOWS] = std::array::from_fn(window);
        let fast = Spectrum::new().magnitudes(&windows);
        for (fast, samples) in fast.iter().zip(windows) {
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
