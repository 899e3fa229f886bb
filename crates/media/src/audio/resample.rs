//! Band-limited resampling: plain interpolation would alias frequencies above 8 kHz into the speech.
//!
//! Samples are resampled as they are decoded, so that only the result is held in memory.

use std::ops::RangeInclusive;

use rubato::{
    Async, FixedAsync, Indexing, Resampler as _, SincInterpolationParameters, WindowFunction,
    audioadapter_buffers::direct::InterleavedSlice,
};

use super::{MAX_SECONDS, RATE};
use crate::MediaError;

/// Supported sample rates in Hz.
const RATES: RangeInclusive<u32> = 1_000..=768_000;
/// Input samples per call of the resampler.
const CHUNK: usize = 1024;
/// Filter length in samples; a shorter one attenuates frequencies just below 8 kHz.
const FILTER: usize = 128;
/// Maximum samples of the result.
const MAX_SAMPLES: usize = MAX_SECONDS as usize * RATE as usize;

/// Mixes interleaved samples, pushed in pieces, down to mono at [`RATE`].
pub(super) struct Mixer {
    channels: usize,
    rate: u32,
    /// Frames pushed so far.
    frames: u64,
    /// Mixed frames that are not resampled yet.
    pending: Vec<f32>,
    /// The resampler, unless the input is at [`RATE`].
    filter: Option<Filter>,
    done: Vec<f32>,
}

struct Filter {
    inner: Async<f32>,
    out: Vec<f32>,
    /// Leading samples of the result that are the filter's delay, still to be dropped.
    delay: usize,
}

impl Mixer {
    /// A mixer for `channels` channels at `rate`.
    ///
    /// # Errors
    /// If the rate is out of range.
    pub(super) fn new(channels: usize, rate: u32) -> Result<Self, MediaError> {
        if !RATES.contains(&rate) {
            return Err(MediaError::BadRate { rate });
        }
        let filter = if rate == RATE { None } else { Some(Filter::new(rate)?) };
        let (pending, done) = (Vec::with_capacity(CHUNK), Vec::new());
        Ok(Self { channels: channels.max(1), rate, frames: 0, pending, filter, done })
    }

    /// Adds whole frames of interleaved samples.
    ///
    /// # Errors
    /// If the audio becomes too long, or a sample is not finite.
    pub(super) fn push(&mut self, samples: &[f32]) -> Result<(), MediaError> {
        if samples.iter().any(|sample| !sample.is_finite()) {
            return Err(MediaError::NotFinite);
        }
        let frames = samples.chunks_exact(self.channels);
        self.frames += frames.len() as u64;
        if self.frames > u64::from(MAX_SECONDS) * u64::from(self.rate) {
            return Err(MediaError::TooLong { limit: MAX_SECONDS });
        }
        let channels = self.channels as f32;
        for frame in frames {
            if self.pending.len() == CHUNK {
                self.resample_pending(None)?;
            }
            self.pending.push(if let [one] = frame {
                *one
            } else {
                frame.iter().sum::<f32>() / channels
            });
        }
        Ok(())
    }

    /// The mono samples of everything that was pushed.
    ///
    /// # Errors
    /// If resampling fails.
    pub(super) fn finish(mut self) -> Result<Vec<f32>, MediaError> {
        let wanted = (self.frames * u64::from(RATE)).div_ceil(u64::from(self.rate)) as usize;
        if !self.pending.is_empty() {
            self.resample_pending(Some(self.pending.len()))?;
        }
        // Flushes the filter with silence.
        while self.done.len() < wanted {
            self.resample_pending(Some(0))?;
        }
        self.done.truncate(wanted);
        Ok(self.done)
    }

    /// Resamples the pending frames: a whole chunk, or `partial` frames followed by silence.
    fn resample_pending(&mut self, partial: Option<usize>) -> Result<(), MediaError> {
        let resampled = match &mut self.filter {
            None => &self.pending,
            Some(filter) => {
                self.pending.resize(CHUNK, 0.0);
                filter.run(&self.pending, partial).ok_or(MediaError::BadRate { rate: self.rate })?
            }
        };
        let needed = self.done.len() + resampled.len();
        if needed > self.done.capacity() {
            let capacity = (2 * needed).min(MAX_SAMPLES).max(needed);
            self.done.reserve_exact(capacity - self.done.len());
        }
        self.done.extend_from_slice(resampled);
        self.pending.clear();
        Ok(())
    }
}

impl Filter {
    fn new(rate: u32) -> Result<Self, MediaError> {
        let filter = SincInterpolationParameters::new(FILTER, WindowFunction::Blackman2);
        let ratio = f64::from(RATE) / f64::from(rate);
        let inner = Async::<f32>::new_sinc(ratio, 1.0, &filter, CHUNK, 1, FixedAsync::Input)
            .map_err(|_| MediaError::BadRate { rate })?;
        let (out, delay) = (vec![0.0; inner.output_frames_max()], inner.output_delay());
        Ok(Self { inner, out, delay })
    }

    /// The output for a chunk of samples, of which the first `partial` count.
    fn run(&mut self, chunk: &[f32], partial: Option<usize>) -> Option<&[f32]> {
        let length = self.out.len();
        let input = InterleavedSlice::new(chunk, 1, chunk.len()).ok()?;
        let mut output = InterleavedSlice::new_mut(&mut self.out, 1, length).ok()?;
        let indexing = Indexing { partial_len: partial, ..Indexing::new() };
        let result = self.inner.process_into_buffer(&input, &mut output, Some(&indexing));
        let (_, produced) = result.ok()?;
        let skipped = self.delay.min(produced);
        self.delay -= skipped;
        Some(&self.out[skipped..produced])
    }
}
