//! The crate's error type.

/// Why an image or audio clip cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// An image without pixels.
    #[error("the image is {width} × {height} pixels: it is empty")]
    EmptyImage {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// More pixels than are accepted.
    #[error("the image has {width} × {height} pixels, more than {limit}: make it smaller")]
    ImageTooLarge {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The maximum number of pixels.
        limit: u64,
    },
    /// The byte count does not match the size.
    #[error("{bytes} bytes are not {width} × {height} pixels of {channels} bytes")]
    WrongLength {
        /// The number of bytes.
        bytes: usize,
        /// The width.
        width: u32,
        /// The height.
        height: u32,
        /// Bytes per pixel.
        channels: u32,
    },
    /// The sides are not multiples of the patch side.
    #[error("an image of {width} × {height} pixels cannot be split into patches of {side}")]
    NotWhole {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The patch side.
        side: u32,
    },
    /// Not a supported number of soft tokens.
    #[error("an image can take 70, 140, 280, 560 or 1120 tokens, not {0}")]
    BadBudget(u32),
    /// The file cannot be decoded.
    #[error("cannot decode the image ({reason}): it must be a PNG, JPEG, WebP or GIF file")]
    BadImage {
        /// The decoder's message.
        reason: String,
    },
    /// The file cannot be decoded.
    #[error("cannot decode the audio ({reason}): it must be a WAV, MP3, FLAC or OGG Vorbis file")]
    BadAudio {
        /// The decoder's message.
        reason: String,
    },
    /// Too short for a single frame.
    #[error("the audio is too short: {samples} samples at 16 kHz, at least 161 are needed")]
    TooShort {
        /// The number of samples.
        samples: usize,
    },
    /// Longer than is accepted.
    #[error("the audio is longer than {limit} seconds: trim it")]
    TooLong {
        /// The limit in seconds.
        limit: u32,
    },
    /// A sample rate out of range.
    #[error("a sample rate of {rate} Hz is not supported: resample the audio")]
    BadRate {
        /// The rate.
        rate: u32,
    },
    /// A sample that is not finite.
    #[error("the audio has NaN or infinite samples: the file is damaged")]
    NotFinite,
}
