//! Bytes as files of pictures and sounds.

use rullama_media::{
    picture::{Budget, CELL, Picture},
    sound::{RATE, Sound, features, tokens_of_frames},
};

/// Pixels and samples beyond which an invocation would take too long.
const MOST_PIXELS: usize = 1 << 18;
const MOST_SAMPLES: usize = 1 << 14;

/// Decodes the bytes as a picture: what was accepted has all its pixels and can be cut for a tower.
pub fn picture(data: &[u8]) {
    match Picture::decode(data) {
        Ok(picture) => {
            let pixels = picture.size().width as usize * picture.size().height as usize;
            assert_eq!(picture.rgb().len(), pixels * 3);
            assert!(pixels > 0);
            if pixels <= MOST_PIXELS {
                let filled = picture.fill(Budget::Tiny);
                assert!((1..=Budget::Tiny.tokens()).contains(&filled.size().tokens()));
                let patches = filled.patches(CELL).expect("sides are whole cells");
                assert_eq!(patches.count(), filled.size().tokens() as usize);
                assert!(patches.values.iter().all(|value| (0.0..=1.0).contains(value)));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error without words: {error:?}"),
    }
}

/// Decodes the bytes as a sound: what was accepted is numbers, and its pieces have features.
pub fn sound(data: &[u8]) {
    match Sound::decode(data) {
        Ok(sound) => {
            assert!(sound.samples().iter().all(|sample| sample.is_finite()));
            assert!(sound.seconds() <= f64::from(u32::MAX) / f64::from(RATE));
            for piece in sound.pieces().iter().flatten().take(1) {
                let features = features(&piece[..piece.len().min(MOST_SAMPLES)]);
                assert!(features.values.iter().all(|value| value.is_finite()));
                assert!(tokens_of_frames(features.frames) <= features.frames);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error without words: {error:?}"),
    }
}
