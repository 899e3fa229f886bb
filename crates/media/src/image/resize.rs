//! Resizing with antialiasing, in the fixed-point arithmetic of the reference, so that pixels are bit-exact.
//!
//! Columns first, then rows, rounded to bytes after each: the rounding is part of the definition.

use std::borrow::Cow;

use super::{Size, with_alpha};
use crate::bands::in_bands;

/// Maximum fractional bits of a weight.
const MAX_BITS: u32 = 22;
/// Bound of a fixed-point weight: 15 bits and a sign.
const LARGEST_WEIGHT: f64 = 32768.0;
const CHANNELS: usize = 3;

/// The interpolation of a resized image. When shrinking, it is widened so that every input pixel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Cubic, with a = −0.5.
    Bicubic,
    /// Linear.
    Bilinear,
}

impl Filter {
    /// Distance in input pixels up to which the kernel is not zero.
    fn support(self) -> f64 {
        match self {
            Self::Bicubic => 2.0,
            Self::Bilinear => 1.0,
        }
    }

    /// The kernel at a distance.
    fn weight(self, at: f64) -> f64 {
        match self {
            Self::Bicubic => cubic(at),
            Self::Bilinear => (1.0 - at.abs()).max(0.0),
        }
    }
}

/// The filter taps of an output element: index of the first input and the weights.
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// One axis: the taps of each output element, and the fractional bits of their weights.
struct Axis {
    taps: Vec<Taps>,
    bits: u32,
}

/// `rgb` of size `from`, resized to size `to`, with alpha.
pub(super) fn resize(rgb: &[u8], from: Size, to: Size, filter: Filter) -> Vec<u8> {
    let wide = match from.width == to.width {
        true => rgb.into(),
        false => {
            Cow::from(columns(rgb, &axis(from.width, to.width, filter), (from.width, to.width)))
        }
    };
    match from.height == to.height {
        true => with_alpha(&wide),
        false => rows(&wide, to.width, &axis(from.height, to.height, filter), to.height),
    }
}

fn columns(rgb: &[u8], axis: &Axis, (from, to): (u32, u32)) -> Vec<u8> {
    let (line, new_line) = (from as usize * CHANNELS, to as usize * CHANNELS);
    let mut out = vec![0; rgb.len() / line * new_line];
    in_bands(&mut out, new_line, rgb.len(), |first, band| {
        for (row, out) in band.chunks_exact_mut(new_line).enumerate() {
            let pixels = &rgb[(first + row) * line..][..line];
            for (taps, out) in axis.taps.iter().zip(out.chunks_exact_mut(CHANNELS)) {
                let inputs = &pixels[taps.first * CHANNELS..][..taps.weights.len() * CHANNELS];
                let mut sums = [axis.half(); CHANNELS];
                for (weight, pixel) in taps.weights.iter().zip(inputs.chunks_exact(CHANNELS)) {
                    for (sum, value) in sums.iter_mut().zip(pixel) {
                        *sum += weight * i32::from(*value);
                    }
                }
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = axis.byte(sum);
                }
            }
        }
    });
    out
}

fn rows(rgb: &[u8], width: u32, axis: &Axis, to: u32) -> Vec<u8> {
    let line = width as usize * CHANNELS;
    let new_line = width as usize * (CHANNELS + 1);
    let mut out = vec![0; new_line * to as usize];
    in_bands(&mut out, new_line, rgb.len(), |first, band| {
        let mut sums = vec![0; line];
        for (row, out) in band.chunks_exact_mut(new_line).enumerate() {
            let taps = &axis.taps[first + row];
            sums.fill(axis.half());
            for (index, weight) in taps.weights.iter().enumerate() {
                let values = &rgb[(taps.first + index) * line..][..line];
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += weight * i32::from(*value);
                }
            }
            let pixels = out.as_chunks_mut::<{ CHANNELS + 1 }>().0.iter_mut();
            for (out, sums) in pixels.zip(sums.as_chunks::<CHANNELS>().0) {
                let [red, green, blue] = sums.map(|sum| axis.byte(sum));
                *out = [red, green, blue, 255];
            }
        }
    });
    out
}

impl Axis {
    /// One half in fixed point, so that the shift rounds.
    fn half(&self) -> i32 {
        1 << (self.bits - 1)
    }

    fn byte(&self, sum: i32) -> u8 {
        (sum >> self.bits).clamp(0, 255) as u8
    }
}

fn axis(from: u32, to: u32, filter: Filter) -> Axis {
    let exact: Vec<(usize, Vec<f64>)> =
        (0..to).map(|index| exact_taps(index, (from, to), filter)).collect();
    let largest = exact.iter().flat_map(|(_, weights)| weights).fold(0.0_f64, |a, b| a.max(*b));
    // The most fractional bits with which the largest weight fits 15 bits and a sign.
    let fits = |bits: &u32| (largest * f64::from(1_u32 << bits)).round() < LARGEST_WEIGHT;
    let bits = (1..=MAX_BITS).rev().find(fits).unwrap_or(1);
    let scale = f64::from(1_u32 << bits);
    let taps = exact.into_iter().map(|(first, weights)| Taps {
        first,
        weights: weights.into_iter().map(|weight| (weight * scale).round() as i32).collect(),
    });
    Axis { taps: taps.collect(), bits }
}

/// The first input of an output element's taps and their weights, which sum to 1.
fn exact_taps(index: u32, (from, to): (u32, u32), filter: Filter) -> (usize, Vec<f64>) {
    let ratio = f64::from(from) / f64::from(to);
    let centre = (f64::from(index) + 0.5) * ratio;
    // When shrinking, the kernel is widened so that every input pixel counts.
    let widening = ratio.max(1.0);
    let support = filter.support() * widening;
    let first = (centre - support + 0.5).floor().max(0.0) as u32;
    let end = ((centre + support + 0.5).floor() as u32).min(from);
    let weight = |tap: u32| filter.weight((f64::from(tap) - centre + 0.5) / widening);
    let weights: Vec<f64> = (first..end).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    (first as usize, weights.into_iter().map(|weight| weight / sum).collect())
}

/// The cubic kernel with a = −0.5.
fn cubic(at: f64) -> f64 {
    let t = at.abs();
    if t < 1.0 {
        (1.5 * t - 2.5) * t * t + 1.0
    } else if t < 2.0 {
        ((-0.5 * t + 2.5) * t - 4.0) * t + 2.0
    } else {
        0.0
    }
}
