//! Another rate, by band-limited resampling: plain interpolation would fold what lies above 8 kHz into the speech.

use std::ops::RangeInclusive;

use rubato::{
    Async, FixedAsync, Resampler, SincInterpolationParameters, WindowFunction,
    audioadapter_buffers::owned::InterleavedOwned,
};

use super::RATE;
use crate::MediaError;

/// Rates that sounds have.
pub(super) const RATES: RangeInclusive<u32> = 1_000..=768_000;
/// Samples that are taken together.
const CHUNK: usize = 1024;
/// Samples that each new one is made of; with less, what lies just below 8 kHz is lost.
const FILTER: usize = 128;

pub(super) fn resample(mono: Vec<f32>, rate: u32) -> Result<Vec<f32>, MediaError> {
    if rate == RATE || mono.is_empty() {
        return Ok(mono);
    }
    let bad = || MediaError::BadRate { rate };
    let length = mono.len();
    let wanted = (length as u64 * u64::from(RATE)).div_ceil(u64::from(rate)) as usize;
    let filter = SincInterpolationParameters::new(FILTER, WindowFunction::Blackman2);
    let ratio = f64::from(RATE) / f64::from(rate);
    let mut resampler = Async::<f32>::new_sinc(ratio, 1.0, &filter, CHUNK, 1, FixedAsync::Input)
        .map_err(|_| bad())?;
    let input = InterleavedOwned::new_from(mono, 1, length).map_err(|_| bad())?;
    let output = resampler.process_all(&input, length, None).map_err(|_| bad())?;
    let mut samples = output.take_data();
    samples.truncate(wanted);
    Ok(samples)
}
