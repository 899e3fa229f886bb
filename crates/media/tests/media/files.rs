//! Files of every supported format, and malformed files.

use std::{io::Cursor, path::Path};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use proptest::prelude::*;
use rullama_media::{MediaError, audio::Audio, image::Image};
use rullama_testkit::golden;

fn image_file(format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let image = RgbImage::from_pixel(7, 5, Rgb([200, 40, 40]));
    DynamicImage::from(image).write_to(&mut file, format).expect("it is written");
    file.into_inner()
}

/// A WAV file; `claimed`, the data length in its header, may be wrong.
fn wav(format: u16, channels: u16, bits: u16, data: &[u8], claimed: u32) -> Vec<u8> {
    let align = channels * bits / 8;
    let mut file = b"RIFF\0\0\0\0WAVEfmt ".to_vec();
    file.extend(16_u32.to_le_bytes());
    file.extend([format, channels].map(u16::to_le_bytes).concat());
    file.extend([16_000_u32, 16_000 * u32::from(align)].map(u32::to_le_bytes).concat());
    file.extend([align, bits].map(u16::to_le_bytes).concat());
    file.extend(b"LIST\x04\0\0\0INFOdata");
    file.extend(claimed.to_le_bytes());
    file.extend(data);
    let length = (file.len() as u32 - 8).to_le_bytes();
    file[4..8].copy_from_slice(&length);
    file
}

#[test]
fn images_of_every_format_are_decoded() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif] {
        let image = Image::decode(&image_file(format)).expect("it is read");
        assert_eq!((image.size().width, image.size().height), (7, 5), "{format:?}");
        for (got, wanted) in image.rgb().iter().zip([200_u8, 40, 40].iter().cycle()) {
            assert!(got.abs_diff(*wanted) <= 4, "{format:?}");
        }
    }
}

/// The same tone, encoded by other programs.
#[test]
fn audio_of_every_format_is_decoded() {
    for (name, seconds) in [
        ("tone.wav", 0.05),
        ("float.wav", 0.02),
        ("tone.flac", 0.25),
        ("stereo.flac", 0.05),
        ("tone.ogg", 0.25),
        ("tone.mp3", 0.25),
    ] {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/audio");
        let file = std::fs::read(corpus.join(name)).expect("a seed");
        let audio = Audio::decode(&file).expect(name);
        // Lossy formats add silence at the ends.
        let spare = if name.ends_with("mp3") { 0.12 } else { 0.01 };
        assert!((audio.seconds() - seconds).abs() < spare, "{name}: {} s", audio.seconds());
        let middle = &audio.samples()[audio.samples().len() / 4..audio.samples().len() * 3 / 4];
        let power = middle.iter().map(|x| x * x).sum::<f32>() / middle.len() as f32;
        assert!((power - 0.125).abs() < 0.03, "{name}: {power}");
    }
}

#[test]
fn exif_orientation_is_applied() {
    // A JPEG with the EXIF orientation "rotate by 90°".
    let jpeg = image_file(ImageFormat::Jpeg);
    let mut exif =
        b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
            .to_vec();
    let mut rotated = jpeg[..2].to_vec();
    rotated.append(&mut exif);
    rotated.extend(&jpeg[2..]);
    let image = Image::decode(&rotated).expect("it is read");
    assert_eq!((image.size().width, image.size().height), (5, 7));
}

#[test]
fn samples_of_every_width_are_decoded() {
    let half = [0.5_f32, -0.5];
    let bytes = |width: usize| -> Vec<u8> {
        let scaled = |value: f32| (f64::from(value) * 2_f64.powi(8 * width as i32 - 1)) as i32;
        half.iter().flat_map(|value| scaled(*value).to_le_bytes()[..width].to_vec()).collect()
    };
    let float: Vec<u8> = half.iter().flat_map(|value| value.to_le_bytes()).collect();
    let eight = vec![192, 64];
    for (format, bits, data) in
        [(1, 8, eight), (1, 16, bytes(2)), (1, 24, bytes(3)), (1, 32, bytes(4)), (3, 32, float)]
    {
        let audio =
            Audio::decode(&wav(format, 1, bits, &data, data.len() as u32)).expect("it is read");
        assert_eq!(audio.samples(), half, "{bits} bits");
    }
}

#[test]
fn streamed_and_truncated_files_are_read_to_their_end() {
    let data: Vec<u8> = (0..400_u16).flat_map(|i| (i * 50).to_le_bytes()).collect();
    for (claimed, given, samples) in
        [(800, 800, 400), (u32::MAX, 800, 400), (0, 800, 400), (100_000, 800, 400), (800, 601, 300)]
    {
        let audio = Audio::decode(&wav(1, 1, 16, &data[..given], claimed)).expect("it is read");
        assert_eq!(audio.samples().len(), samples, "{claimed} claimed, {given} given");
    }
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"hello", b"RIFF", b"\x89PNG\r\n\x1a\n", b"<html></html>"] {
        assert!(matches!(Image::decode(bytes), Err(MediaError::BadImage { .. })));
        assert!(matches!(Audio::decode(bytes), Err(MediaError::BadAudio { .. })));
    }
    // A header that claims 65,000 × 65,000 pixels.
    let mut huge = image_file(ImageFormat::Gif);
    huge[6..10].copy_from_slice(&[0xe8, 0xfd, 0xe8, 0xfd]);
    assert!(Image::decode(&huge).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A damaged file gives an image, an audio clip or an error, never a panic.
    #[test]
    fn damage_never_panics(kind in 0..5_usize, at in any::<prop::sample::Index>(), flip in 1..=255_u8, cut in any::<prop::sample::Index>()) {
        let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif];
        let mut file = match formats.get(kind) {
            Some(format) => image_file(*format),
            None => golden("media/micro-e2b-audio.wav")[..4000].to_vec(),
        };
        let index = at.index(file.len());
        file[index] ^= flip;
        file.truncate(cut.index(file.len()) + 1);
        let _ = Image::decode(&file);
        let _ = Audio::decode(&file);
    }
}
