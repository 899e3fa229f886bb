//! Bytes as image and audio files.

use rullama_media::{
    audio::{Audio, RATE, features, tokens_of_frames},
    image::{Budget, CELL, Image},
};

/// Pixels and samples beyond which an invocation would take too long.
const MAX_PIXELS: usize = 1 << 18;
const MAX_SAMPLES: usize = 1 << 14;

/// Decodes the bytes as an image: an accepted image has all its pixels and can be split into patches.
pub fn image(data: &[u8]) {
    match Image::decode(data) {
        Ok(image) => {
            let pixels = image.size().width as usize * image.size().height as usize;
            assert_eq!(image.rgb().len(), pixels * 3);
            assert!(pixels > 0);
            if pixels <= MAX_PIXELS {
                let filled = image.fill(Budget::Tiny);
                assert!((1..=Budget::Tiny.tokens()).contains(&filled.size().tokens()));
                let patches = filled.patches(CELL).expect("sides are whole cells");
                assert_eq!(patches.count(), filled.size().tokens() as usize);
                assert!(patches.values.iter().all(|value| (0.0..=1.0).contains(value)));
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error without a message: {error:?}")
        }
    }
}

/// Decodes the bytes as an audio clip: the samples of an accepted clip are finite, and so are its features.
pub fn audio(data: &[u8]) {
    match Audio::decode(data) {
        Ok(audio) => {
            assert!(audio.samples().iter().all(|sample| sample.is_finite()));
            assert!(audio.seconds() <= f64::from(u32::MAX) / f64::from(RATE));
            for piece in audio.pieces().iter().flatten().take(1) {
                let features = features(&piece[..piece.len().min(MAX_SAMPLES)]);
                assert!(features.values.iter().all(|value| value.is_finite()));
                assert!(tokens_of_frames(features.frames) <= features.frames);
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error without a message: {error:?}")
        }
    }
}
