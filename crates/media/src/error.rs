//! What can be wrong with an image or audio clip.

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
    /// More pixels than we are ready to hold.
    #[error("the image has {width} × {height} pixels, more than {limit}: make it smaller")]
    ImageTooLarge {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The most pixels.
        limit: u64,
    },
    /// The bytes are not those of so many pixels.
    #[error("{bytes} bytes are not {width} × {height} pixels of {channels} bytes")]
    WrongLength {
        /// How many there are.
        bytes: usize,
        /// The width.
        width: u32,
        /// The height.
        height: u32,
        /// Bytes of a pixel.
        channels: u32,
    },
    /// The sides are no multiples of a patch's.
    #[error("an image of {width} × {height} pixels cannot be split into patches of {side}")]
    NotWhole {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The side.
        side: u32,
    },
    /// No such number of soft tokens.
    #[error("an image can take 70, 140, 280, 560 or 1120 tokens, not {0}")]
    BadBudget(u32),
    /// The file cannot be decoded.
    #[error("cannot decode the image ({reason}): it must be a PNG, JPEG, WebP or GIF file")]
    BadImage {
        /// What the decoder says.
        reason: String,
    },
    /// The file cannot be decoded.
    #[error("cannot decode the audio ({reason}): it must be a WAV, MP3, FLAC or OGG Vorbis file")]
    BadAudio {
        /// What the decoder says.
        reason: String,
    },
    /// Too short for a single frame.
    #[error("the audio is too short: {samples} samples at 16 kHz, at least 161 are needed")]
    TooShort {
        /// How many it has.
        samples: usize,
    },
    /// Longer than we are ready to hold.
    #[error("the audio is longer than {limit} seconds: trim it")]
    TooLong {
        /// The limit.
        limit: u32,
    },
    /// A rate no audio has.
    #[error("a sample rate of {rate} Hz is not supported: resample the audio")]
    BadRate {
        /// The rate.
        rate: u32,
    },
    /// A sample that is no number.
    #[error("the audio has NaN or infinite samples: the file is damaged")]
    NotFinite,
}
