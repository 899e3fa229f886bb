//! An audio clip on its way to the tower: decoded, made mono at 16 kHz, cut into pieces, and its log-mel features.

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

/// Samples a second that the towers expect.
pub const RATE: u32 = 16_000;
/// The most samples of a piece: 30 seconds.
pub const PIECE: usize = 480_000;
/// Samples of the 12B model's frames, which it reads as they are.
pub const RAW_FRAME: usize = 640;
/// The fewest samples that make a frame of features.
pub const SHORTEST: usize = 161;
/// The longest audio we take, in seconds: two hours of it are already more than any context holds.
pub const MOST_SECONDS: u32 = 7_200;

/// One channel at [`RATE`].
#[derive(Debug, Clone, PartialEq)]
pub struct Audio {
    samples: Vec<f32>,
}

impl Audio {
    /// An audio clip of interleaved samples at any rate: channels are averaged, the rate is changed where it must be.
    ///
    /// # Errors
    /// If there are no channels, the rate is absurd, samples are no numbers, or it is too long.
    pub fn new(samples: &[f32], channels: usize, rate: u32) -> Result<Self, MediaError> {
        let mut mixer = Mixer::new(channels, rate)?;
        mixer.push(samples)?;
        Self::mixed(mixer)
    }

    fn mixed(mixer: Mixer) -> Result<Self, MediaError> {
        Ok(Self { samples: mixer.finish()? })
    }

    /// Decodes the bytes of a WAV file; with the feature `decode` also those of an MP3, FLAC or OGG Vorbis file.
    ///
    /// # Errors
    /// If the file is damaged, of another kind, or too long.
    pub fn decode(file: &[u8]) -> Result<Self, MediaError> {
        if wav::is_wav(file) {
            return wav::decode(file);
        }
        #[cfg(feature = "decode")]
        return decode::decode(file);
        #[cfg(not(feature = "decode"))]
        Err(MediaError::BadAudio { reason: "only WAV files are decoded here".into() })
    }

    /// Its samples.
    pub fn samples(&self) -> &[f32] {
        &self.samples
    }

    /// How long it is.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(RATE)
    }

    /// Pieces of at most [`PIECE`] samples, which towers hear one by one. What is too short to be heard is left out.
    ///
    /// # Errors
    /// If all of it is too short.
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

/// Frames of features of a piece of so many samples.
pub fn frames_of_samples(samples: usize) -> usize {
    log_mel::frames_of_samples(samples)
}

/// Soft tokens that so many frames of features become: two convolutions take every second one.
pub fn tokens_of_frames(frames: usize) -> usize {
    frames.div_ceil(2).div_ceil(2)
}
