//! Features, sample rates and pieces.

use rullama_media::{
    MediaError,
    audio::{Audio, BINS, PIECE, features},
};
use rullama_testkit::golden;

use super::floats;

fn tone(hertz: f64, rate: u32, samples: usize) -> Vec<f32> {
    let angle = |i: usize| std::f64::consts::TAU * hertz * i as f64 / f64::from(rate);
    (0..samples).map(|i| (angle(i).sin() * 0.5) as f32).collect()
}

#[test]
fn features_equal_the_goldens() {
    let audio = Audio::decode(&golden("media/micro-e2b-audio.wav")).expect("a WAV file");
    let pieces = audio.pieces().expect("long enough");
    assert_eq!(pieces.len(), 1);
    let features = features(pieces[0]);
    let wanted = floats("media/micro-e2b-audio.safetensors", "audio.log_mel");
    assert_eq!(features.frames * BINS, wanted.len());
    // The reference computes the FFT in f32: within 1e-5 of f64 on this clip.
    for (got, wanted) in features.values.iter().zip(wanted) {
        assert!((got - wanted).abs() < 2e-5, "{got} is not {wanted}");
    }
}

#[test]
fn other_rates_keep_a_tone_and_its_length() {
    for rate in [8_000, 11_025, 22_050, 44_100, 48_000, 96_000] {
        let audio = Audio::new(&tone(440.0, rate, rate as usize), 1, rate).expect("an audio clip");
        assert_eq!(audio.samples().len(), 16_000, "{rate}");
        // Away from the ends, where the filter sees silence. The filter's delay is removed in whole samples, so the tone may lag by less
        // than one sample: `late` is that lag times the steepest slope.
        let late = 0.5 * std::f32::consts::TAU * 440.0 / 16_000.0;
        let wanted = tone(440.0, 16_000, 16_000);
        for (at, (got, wanted)) in
            audio.samples().iter().zip(&wanted).enumerate().skip(1000).take(14_000)
        {
            assert!(
                (got - wanted).abs() < late + 5e-3,
                "{rate}, sample {at}: {got} is not {wanted}"
            );
        }
    }
}

#[test]
fn frequencies_above_nyquist_are_removed() {
    let audio = Audio::new(&tone(15_000.0, 48_000, 48_000), 1, 48_000).expect("an audio clip");
    assert!(audio.samples()[1000..15_000].iter().all(|sample| sample.abs() < 1e-2));
}

#[test]
fn channels_are_averaged() {
    let audio = Audio::new(&[0.5, -0.5, 1.0, 0.0, 0.25], 2, 16_000).expect("an audio clip");
    assert_eq!(audio.samples(), [0.0, 0.5]);
}

#[test]
fn long_audio_is_split_and_too_short_audio_refused() {
    let pieces = |samples: usize| {
        let audio = Audio::new(&vec![0.1; samples], 1, 16_000).expect("an audio clip");
        audio.pieces().map(|pieces| pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>())
    };
    assert_eq!(pieces(161), Ok(vec![161]));
    assert_eq!(pieces(160), Err(MediaError::TooShort { samples: 160 }));
    assert_eq!(pieces(0), Err(MediaError::TooShort { samples: 0 }));
    assert_eq!(pieces(PIECE + 100), Ok(vec![PIECE]));
    assert_eq!(pieces(PIECE + 200), Ok(vec![PIECE, 200]));
}

#[test]
fn invalid_audio_is_refused() {
    assert_eq!(Audio::new(&[0.0], 1, 3), Err(MediaError::BadRate { rate: 3 }));
    assert_eq!(Audio::new(&[f32::NAN], 1, 16_000), Err(MediaError::NotFinite));
}
