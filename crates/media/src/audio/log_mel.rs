//! Log-mel features: magnitude spectra of short windows in 128 mel bands.

use std::{array, f32::consts::FRAC_1_SQRT_2};

use super::{
    RATE,
    spectrum::{self, Each, Spectrum, WINDOWS},
};
use crate::bands::in_bands;

/// Mel bands.
pub const BINS: usize = 128;

const HOP: usize = 160;
const WINDOW: usize = 320;
/// Window length of the reference implementation, whose last sample is not used.
const SPAN: usize = WINDOW + 1;
const FFT: usize = spectrum::LENGTH;
/// Zero padding at the start: half a window.
const LEAD: usize = 160;
/// Approximate operations per frame, for the decision to use threads.
const STEPS: usize = 1 << 13;
/// Added before the logarithm.
const FLOOR: f64 = 0.001;

/// Frames of [`BINS`] values, one every 10 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Number of frames.
    pub frames: usize,
    /// Log-mel values, frame by frame.
    pub values: Vec<f32>,
}

pub(super) fn frames_of_samples(samples: usize) -> usize {
    let length = LEAD + samples;
    if length < SPAN { 0 } else { (length - SPAN) / HOP + 1 }
}

pub(super) fn features(piece: &[f32]) -> Features {
    let frames = frames_of_samples(piece.len());
    let (transform, window, bands) = (Spectrum::new(), window(), bands());
    // Frames are transformed in groups of `WINDOWS`; frames past the last one see zeros.
    let mut samples = vec![0.0; frames.next_multiple_of(WINDOWS) * HOP + WINDOW];
    let length = piece.len().min(samples.len() - LEAD);
    samples[LEAD..LEAD + length].copy_from_slice(&piece[..length]);
    let mut values = vec![0.0; frames * BINS];
    in_bands(&mut values, WINDOWS * BINS, frames * STEPS, |first, band| {
        let mut inputs = [[0.0; WINDOWS]; FFT];
        for (group, out) in band.chunks_mut(WINDOWS * BINS).enumerate() {
            let start = (first + group) * WINDOWS * HOP;
            let input_samples = &samples[start..start + (WINDOWS - 1) * HOP + WINDOW];
            for (i, (input, weight)) in inputs.iter_mut().zip(&window).enumerate() {
                *input = array::from_fn(|index| weight * f64::from(input_samples[index * HOP + i]));
            }
            let spectra = transform.magnitudes(&inputs);
            let levels: [_; BINS] = array::from_fn(|index| bands[index].levels(&spectra));
            for (index, out) in out.chunks_mut(BINS).enumerate() {
                for (out, levels) in out.iter_mut().zip(&levels) {
                    *out = ln(levels[index]);
                }
            }
        }
    });
    Features { frames, values }
}

/// A periodic Hann window.
fn window() -> Vec<f64> {
    let angle = |index: usize| std::f64::consts::TAU * index as f64 / WINDOW as f64;
    (0..WINDOW).map(|index| 0.5 - 0.5 * angle(index).cos()).collect()
}

/// A triangular mel filter over the bins of a spectrum.
struct Band {
    first: usize,
    weights: Vec<f64>,
}

impl Band {
    /// The band's magnitude in each window, rounded to f32.
    fn levels(&self, spectra: &[Each]) -> [f32; WINDOWS] {
        let bins_of_band = &spectra[self.first..self.first + self.weights.len()];
        let mut sums = [0.0; WINDOWS];
        for (weight, bins) in self.weights.iter().zip(bins_of_band) {
            for (sum, bin) in sums.iter_mut().zip(bins) {
                *sum += weight * bin;
            }
        }
        sums.map(|sum: f64| (sum + FLOOR) as f32)
    }
}

/// The natural logarithm of a positive normal number, to two units in the last place or 1e-8. Unlike the library's, which is a call with
/// branches per value, it vectorises.
fn ln(number: f32) -> f32 {
    // ln 2 in two parts; the first has so few bits that its product with any exponent is exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // number = 2^exponent · rest, with rest in [√½, √2).
    let above = number.to_bits().wrapping_sub(FRAC_1_SQRT_2.to_bits());
    let exponent = (above.cast_signed() >> 23) as f32;
    let rest = f32::from_bits((above & 0x7f_ffff) + FRAC_1_SQRT_2.to_bits());
    // ln((1 + s) / (1 - s)) = 2 s (1 + s²/3 + s⁴/5 + …), where s is 0.172 at most.
    let s = (rest - 1.0) / (rest + 1.0);
    let z = s * s;
    let series = z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0))));
    exponent * LN_2[0] + (2.0 * s + (2.0 * s * series + exponent * LN_2[1]))
}

fn bands() -> Vec<Band> {
    let top = f64::from(RATE) / 2.0;
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let hertz = |mel: f64| 700.0 * (10.0_f64.powf(mel / 2595.0) - 1.0);
    let corner = |index: usize| hertz(index as f64 / (BINS + 1) as f64 * mel(top));
    let bin = |index: usize| index as f64 * top / (FFT / 2) as f64;
    let band = |index: usize| {
        let (low, peak, high) = (corner(index), corner(index + 1), corner(index + 2));
        let height =
            |at: f64| ((at - low) / (peak - low)).min((high - at) / (high - peak)).max(0.0);
        let inside = |index: &usize| height(bin(*index)) > 0.0;
        let first = (0..=FFT / 2).find(inside).unwrap_or(0);
        let weights =
            (first..=FFT / 2).map(|index| height(bin(index))).take_while(|height| *height > 0.0);
        Band { first, weights: weights.collect() }
    };
    (0..BINS).map(band).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() < within, "{a} is not {b}");
    }

    #[test]
    fn bands_equal_the_reference() {
        let bands = bands();
        assert_eq!(bands.iter().map(|band| band.weights.len()).sum::<usize>(), 506);
        assert!(bands[0].weights.is_empty());
        let weight = |bin: usize, band: usize| bands[band].weights[bin - bands[band].first];
        for (bin, band, value) in [
            (1, 1, 0.766_008),
            (1, 2, 0.233_992),
            (5, 10, 0.311_869),
            (56, 64, 0.128_486),
            (57, 64, 0.776_708),
            (58, 64, 0.583_290),
            (246, 127, 0.126_341),
            (253, 127, 0.557_027),
        ] {
            close(weight(bin, band), value, 1e-6);
        }
    }

    #[test]
    fn logarithms_equal_the_library() {
        let mut number = FLOOR as f32;
        while number < 1e5 {
            let wanted = f64::from(number).ln();
            let within = 2.0 * f64::from(f32::EPSILON) * wanted.abs() + 1e-8;
            close(f64::from(ln(number)), wanted, within);
            number *= 1.000_01;
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn a_tone_and_silence_give_known_features() {
        let tone: Vec<f32> = (0..16_000)
            .map(|i| (std::f64::consts::TAU * 1000.0 * f64::from(i) / 16_000.0).sin() as f32)
            .collect();
        let features = features(&tone);
        assert_eq!(features.frames, 99);
        let frame = |index: usize| &features.values[index * BINS..(index + 1) * BINS];
        for (bin, value) in
            [(42, 2.626_794), (43, 3.820_512), (44, 4.323_617), (45, 4.298_320), (46, 3.700_775)]
        {
            close(f64::from(frame(10)[bin]), value, 1e-4);
        }
        close(frame(10).iter().map(|v| f64::from(*v)).sum::<f64>() / 128.0, -4.909_96, 1e-4);
        for (bin, value) in [(0, -6.907_755), (1, 0.657_476), (2, -0.527_250), (3, 0.455_710)] {
            close(f64::from(frame(0)[bin]), value, 1e-4);
        }
        let silence = super::features(&[0.0; 1600]);
        assert_eq!(silence.frames, 9);
        assert!(silence.values.iter().all(|value| (value + 6.907_755).abs() < 1e-5));
    }

    #[test]
    fn short_pieces_have_few_frames() {
        for (samples, frames, tokens) in [
            (0, 0, 0),
            (160, 0, 0),
            (161, 1, 1),
            (320, 1, 1),
            (321, 2, 1),
            (1600, 9, 3),
            (8000, 49, 13),
        ] {
            let got = features(&vec![0.1; samples]).frames;
            assert_eq!(
                (got, super::super::tokens_of_frames(got)),
                (frames, tokens),
                "{samples} samples"
            );
        }
    }
}
