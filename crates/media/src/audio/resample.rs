//! Another rate, by band-limited resampling: plain interpolation would fold what lies above 8 kHz into the speech.
//!
//! Samples are taken as they are decoded, so that no more than the result is ever held.

use std::ops::RangeInclusive;

use rubato::{
    Async, FixedAsync, Indexing, Resampler as _, SincInterpolationParameters, WindowFunction,
    audioadapter_buffers::direct::InterleavedSlice,
};

use super::{MOST_SECONDS, RATE};
use crate::MediaError;

/// Rates that audio clips have.
const RATES: RangeInclusive<u32> = 1_000..=768_000;
/// Samples that are taken together.
const CHUNK: usize = 1024;
/// Samples that each new one is made of; with less, what lies just below 8 kHz is lost.
const FILTER: usize = 128;
/// The most samples of a result.
const MOST_SAMPLES: usize = MOST_SECONDS as usize * RATE as usize;

/// Makes one channel at [`RATE`] of interleaved samples that come in pieces.
pub(super) struct Mixer {
    channels: usize,
    rate: u32,
    /// Frames so far.
    frames: u64,
    /// Frames of one channel that no chunk was made of yet.
    pending: Vec<f32>,
    /// Where the rate must be changed.
    filter: Option<Filter>,
    done: Vec<f32>,
}

struct Filter {
    inner: Async<f32>,
    out: Vec<f32>,
    /// Samples of the result that are only the filter's delay.
    delay: usize,
}

impl Mixer {
    /// A mixer of audio with so many channels at this rate.
    ///
    /// # Errors
    /// If no audio has such a rate.
    pub(super) fn new(channels: usize, rate: u32) -> Result<Self, MediaError> {
        if !RATES.contains(&rate) {
            return Err(MediaError::BadRate { rate });
        }
        let filter = if rate == RATE { None } else { Some(Filter::new(rate)?) };
        let (pending, done) = (Vec::with_capacity(CHUNK), Vec::new());
        Ok(Self { channels: channels.max(1), rate, frames: 0, pending, filter, done })
    }

    /// Takes whole frames of interleaved samples.
    ///
    /// # Errors
    /// If the audio becomes too long, or samples are no numbers.
    pub(super) fn push(&mut self, samples: &[f32]) -> Result<(), MediaError> {
        if samples.iter().any(|sample| !sample.is_finite()) {
            return Err(MediaError::NotFinite);
        }
        let frames = samples.chunks_exact(self.channels);
        self.frames += frames.len() as u64;
        if self.frames > u64::from(MOST_SECONDS) * u64::from(self.rate) {
            return Err(MediaError::TooLong { limit: MOST_SECONDS });
        }
        let channels = self.channels as f32;
        for frame in frames {
            if self.pending.len() == CHUNK {
                self.take_chunk(None)?;
            }
            self.pending.push(if let [one] = frame {
                *one
            } else {
                frame.iter().sum::<f32>() / channels
            });
        }
        Ok(())
    }

    /// Everything that was pushed.
    ///
    /// # Errors
    /// If it cannot be resampled.
    pub(super) fn finish(mut self) -> Result<Vec<f32>, MediaError> {
        let wanted = (self.frames * u64::from(RATE)).div_ceil(u64::from(self.rate)) as usize;
        if !self.pending.is_empty() {
            self.take_chunk(Some(self.pending.len()))?;
        }
        // What the filter still holds comes out after silence.
        while self.done.len() < wanted {
            self.take_chunk(Some(0))?;
        }
        self.done.truncate(wanted);
        Ok(self.done)
    }

    /// Makes samples of the pending ones: of a whole chunk, or of so many and silence.
    fn take_chunk(&mut self, partial: Option<usize>) -> Result<(), MediaError> {
        let made = match &mut self.filter {
            None => &self.pending,
            Some(filter) => {
                self.pending.resize(CHUNK, 0.0);
                filter.run(&self.pending, partial).ok_or(MediaError::BadRate { rate: self.rate })?
            }
        };
        let needed = self.done.len() + made.len();
        if needed > self.done.capacity() {
            let capacity = (2 * needed).min(MOST_SAMPLES).max(needed);
            self.done.reserve_exact(capacity - self.done.len());
        }
        self.done.extend_from_slice(made);
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

    /// What comes out for a chunk of samples, of which only so many count.
    fn run(&mut self, chunk: &[f32], partial: Option<usize>) -> Option<&[f32]> {
        let length = self.out.len();
        let input = InterleavedSlice::new(chunk, 1, chunk.len()).ok()?;
        let mut output = InterleavedSlice::new_mut(&mut self.out, 1, length).ok()?;
        let indexing = Indexing { partial_len: partial, ..Indexing::new() };
        let made = self.inner.process_into_buffer(&input, &mut output, Some(&indexing));
        let (_, made) = made.ok()?;
        let skipped = self.delay.min(made);
        self.delay -= skipped;
        Some(&self.out[skipped..made])
    }
}
