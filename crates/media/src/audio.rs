//! Audio preprocessing: decoding, mono at 16 kHz, pieces, log-mel features.

#[cfg(feature = "decode")]
mod decode;
mod log_mel;
mod resample;
mod spectrum;
#[cfg(feature = "decode")]
mod vorbis;
mod wav;

pub use log_mel::{BINS, Features};

use crate::MediaError;
use resample::Mixer;

/// Sample rate of the audio encoders' input, in Hz.
pub const RATE: u32 = 16_000;
/// Maximum samples of a piece: 30 seconds.
pub const PIECE: usize = 480_000;
/// Samples per frame of the 12B model, which takes raw audio.
pub const RAW_FRAME: usize = 640;
/// Minimum samples for one frame of features.
pub const SHORTEST: usize = 161;
/// Maximum length in seconds: two hours already exceed any context.
pub const MAX_SECONDS: u32 = 7_200;

/// A mono audio clip at [`RATE`].
#[derive(Debug, Clone, PartialEq)]
pub struct Audio {
    samples: Vec<f32>,
}

impl Audio {
    /// A clip of interleaved samples at any rate: averages the channels and resamples if necessary.
    ///
    /// # Errors
    /// If there are no channels, the rate is out of range, a sample is not finite, or the clip is too long.
    pub fn new(samples: &[f32], channels: usize, rate: u32) -> Result<Self, MediaError> {
        let mut mixer = Mixer::new(channels, rate)?;
        mixer.push(samples)?;
        Self::mixed(mixer)
    }

    fn mixed(mixer: Mixer) -> Result<Self, MediaError> {
        Ok(Self { samples: mixer.finish()? })
    }

    /// Decodes a WAV file; with the feature `decode` also MP3, FLAC and OGG Vorbis.
    ///
    /// # Errors
    /// If the file is damaged, of another format, or too long.
    pub fn decode(file: &[u8]) -> Result<Self, MediaError> {
        if wav::is_wav(file) {
            return wav::decode(file);
        }
        #[cfg(feature = "decode")]
        return decode::decode(file);
        #[cfg(not(feature = "decode"))]
        Err(MediaError::BadAudio { reason: "this build decodes only WAV".into() })
    }

    /// The samples.
    pub fn samples(&self) -> &[f32] {
        &self.samples
    }

    /// Duration in seconds.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(RATE)
    }

    /// Pieces of at most [`PIECE`] samples, which are encoded one by one. A rest shorter than [`SHORTEST`] is dropped.
    ///
    /// # Errors
    /// If the whole clip is too short.
    pub fn pieces(&self) -> Result<Vec<&[f32]>, MediaError> {
        let pieces: Vec<&[f32]> =
            self.samples.chunks(PIECE).filter(|piece| piece.len() >= SHORTEST).collect();
        if pieces.is_empty() {
            return Err(MediaError::TooShort { samples: self.samples.len() });
        }
        Ok(pieces)
    }
}

/// The log-mel features of a piece.
pub fn features(piece: &[f32]) -> Features {
    log_mel::features(piece)
}

/// Number of feature frames of a piece of `samples` samples.
pub fn frames_of_samples(samples: usize) -> usize {
    log_mel::frames_of_samples(samples)
}

/// Number of soft tokens for `frames` feature frames: two convolutions of stride 2.
pub fn tokens_of_frames(frames: usize) -> usize {
    frames.div_ceil(2).div_ceil(2)
}
