//! Another rate, by band-limited resampling: plain interpolation would fold what lies above 8 kHz into the speech.

use std::ops::RangeInclusive;

use rubato::{Fft, FixedSync, Resampler, audioadapter_buffers::owned::InterleavedOwned};

use super::RATE;
use crate::MediaError;

/// Rates that sounds have.
pub(super) const RATES: RangeInclusive<u32> = 1_000..=768_000;
/// Samples that are transformed together.
const CHUNK: usize = 1024;

pub(super) fn resample(mono: Vec<f32>, rate: u32) -> Result<Vec<f32>, MediaError> {
    if rate == RATE || mono.is_empty() {
        return Ok(mono);
    }
    let bad = || MediaError::BadRate { rate };
    let length = mono.len();
    let wanted = (length as u64 * u64::from(RATE)).div_ceil(u64::from(rate)) as usize;
    let mut resampler = Fft::<f32>::new(rate as usize, RATE as usize, CHUNK, 1, FixedSync::Both)
        .map_err(|_| bad())?;
    let input = InterleavedOwned::new_from(mono, 1, length).map_err(|_| bad())?;
    let output = resampler.process_all(&input, length, None).map_err(|_| bad())?;
    let mut samples = output.take_data();
    samples.truncate(wanted);
    Ok(samples)
}
