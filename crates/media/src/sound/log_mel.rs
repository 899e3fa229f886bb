//! Log-mel features: the magnitude of short windows' spectra, gathered into 128 bands as an ear does.

use super::{
    RATE,
    spectrum::{self, Spectrum, WINDOWS},
};
use crate::bands::in_bands;

/// Bands.
pub const BINS: usize = 128;

const HOP: usize = 160;
const WINDOW: usize = 320;
/// A window as the reference counts it; its last sample is not used.
const SPAN: usize = WINDOW + 1;
const FFT: usize = spectrum::LENGTH;
/// Silence in front, half a window of it.
const LEAD: usize = 160;
/// Steps of work of a frame, about.
const STEPS: usize = 1 << 13;
/// Added before the logarithm.
const FLOOR: f64 = 0.001;

/// Frames of [`BINS`] numbers, ten milliseconds apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// How many frames.
    pub frames: usize,
    /// Their numbers, frame by frame.
    pub values: Vec<f32>,
}

pub(super) fn frames_of_samples(samples: usize) -> usize {
    let length = LEAD + samples;
    if length < SPAN { 0 } else { (length - SPAN) / HOP + 1 }
}

pub(super) fn features(piece: &[f32]) -> Features {
    let frames = frames_of_samples(piece.len());
    let (transform, window, bands) = (Spectrum::new(), window(), bands());
    // Frames are transformed several at a time; those behind the last one hear silence.
    let mut samples = vec![0.0; frames.next_multiple_of(WINDOWS) * HOP + WINDOW];
    let heard = piece.len().min(samples.len() - LEAD);
    samples[LEAD..LEAD + heard].copy_from_slice(&piece[..heard]);
    let mut values = vec![0.0; frames * BINS];
    in_bands(&mut values, WINDOWS * BINS, frames * STEPS, |first, band| {
        let mut inputs = [[0.0; FFT]; WINDOWS];
        for (group, out) in band.chunks_mut(WINDOWS * BINS).enumerate() {
            for (index, input) in inputs.iter_mut().enumerate() {
                let start = ((first + group) * WINDOWS + index) * HOP;
                for ((value, weight), sample) in
                    input.iter_mut().zip(&window).zip(&samples[start..])
                {
                    *value = weight * f64::from(*sample);
                }
            }
            let spectra = transform.magnitudes(&inputs);
            for (out, magnitudes) in out.chunks_mut(BINS).zip(&spectra) {
                for (out, band) in out.iter_mut().zip(&bands) {
                    *out = band.level(magnitudes);
                }
            }
        }
    });
    Features { frames, values }
}

/// A Hann window that goes round.
fn window() -> Vec<f64> {
    let angle = |index: usize| std::f64::consts::TAU * index as f64 / WINDOW as f64;
    (0..WINDOW).map(|index| 0.5 - 0.5 * angle(index).cos()).collect()
}

/// A triangle over the bins of a spectrum.
struct Band {
    first: usize,
    weights: Vec<f64>,
}

impl Band {
    fn level(&self, magnitudes: &[f64]) -> f32 {
        let near = &magnitudes[self.first..self.first + self.weights.len()];
        let sum: f64 = self.weights.iter().zip(near).map(|(weight, bin)| weight * bin).sum();
        // Of a number with as many bits as are kept.
        ((sum + FLOOR) as f32).ln()
    }
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
    fn the_bands_are_the_references() {
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
    fn a_tone_and_silence() {
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
    fn frames_of_short_pieces() {
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
