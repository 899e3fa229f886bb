//! Peak memory of decoding, relative to input and output size. A separate test binary, since the allocator counts everything.
#![cfg(feature = "decode")]

use std::{io::Cursor, path::Path};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use peak_alloc::PeakAlloc;
use rullama_media::{MediaError, audio::Audio, image::Image};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Fixed cost of decoders: tables, and for audio the current block, 8 channels of 65,535 samples, decoded and interleaved.
const DECODER: usize = 6 << 20;
/// Limit for a header that is refused.
const HEADER: usize = 256 << 10;
/// Bytes per sample: the samples, and while the vector grows those of half and of twice the length, 4 bytes each.
const SAMPLE: usize = 3 * 4;
/// Bytes per pixel: as its decoder has it (for JPEG and WebP with intermediate data), as RGBA, and as RGB.
const PIXEL: usize = 4 * 4;

/// The result of `work`, and its peak memory in addition to what was allocated before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = work();
    (result, MEMORY.peak_usage().saturating_sub(before))
}

/// A line of the printed table.
fn line(what: &str, file: usize, peak: usize, bound: usize) -> String {
    let each = peak as f64 / file as f64;
    format!("{what:<24} {file:>9} bytes  peak {peak:>11}  bound {bound:>11}  {each:>9.1} per byte")
}

fn audio(what: &str, file: &[u8]) -> String {
    let (audio, peak) = peak(|| Audio::decode(file).expect("it is read"));
    // The decoder gets its own copy of the file.
    let bound = DECODER + 2 * file.len() + SAMPLE * audio.samples().len();
    assert!(peak <= bound, "{what}: {peak} bytes, more than {bound}");
    line(what, file.len(), peak, bound)
}

fn image(what: &str, file: &[u8]) -> String {
    let (image, peak) = peak(|| Image::decode(file).expect("it is read"));
    let pixels = image.size().width as usize * image.size().height as usize;
    let bound = DECODER + file.len() + PIXEL * pixels;
    assert!(peak <= bound, "{what}: {peak} bytes, more than {bound}");
    line(what, file.len(), peak, bound)
}

/// Decodes a header that claims more pixels than are accepted.
fn refused(what: &str, file: &[u8]) -> String {
    let (result, peak) = peak(|| Image::decode(file).map(drop));
    let known =
        matches!(result, Err(MediaError::ImageTooLarge { .. } | MediaError::BadImage { .. }));
    assert!(known, "{what}: {result:?}");
    assert!(peak <= HEADER, "{what}: {peak} bytes");
    line(what, file.len(), peak, HEADER)
}

fn encoded(format: ImageFormat, side: u32) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let image = RgbImage::from_fn(side, side, |x, y| Rgb([x as u8, y as u8, (x ^ y) as u8]));
    DynamicImage::from(image).write_to(&mut file, format).expect("it is written");
    file.into_inner()
}

fn corpus(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/audio");
    std::fs::read(folder.join(name)).expect("a seed")
}

fn crc<const BITS: u32>(bytes: &[u8], polynomial: u16) -> u16 {
    let top = 1_u16 << (BITS - 1);
    bytes.iter().fold(0, |crc, byte| {
        let crc = crc ^ u16::from(*byte) << (BITS - 8);
        (0..8).fold(crc, |crc, _| if crc & top == 0 { crc << 1 } else { crc << 1 ^ polynomial })
    }) & (top | (top - 1))
}

/// A FLAC file of silence in eight channels at the highest rate: two bytes for every 65,535 samples.
fn silent_flac(frames: u8) -> Vec<u8> {
    const BLOCK: u16 = 65_535;
    const RATE: u64 = 655_350;
    let total = u64::from(frames) * u64::from(BLOCK);
    let mut file = b"fLaC\x80\0\0\x22".to_vec();
    file.extend([BLOCK.to_be_bytes(), BLOCK.to_be_bytes()].concat());
    file.extend([0; 6]);
    // Rate, channels minus one, bits per sample minus one, samples.
    file.extend((RATE << 44 | 7 << 41 | 7 << 36 | total).to_be_bytes());
    file.extend([0; 16]);
    for frame in 0..frames {
        // Frame numbers above 127 take two bytes, as in UTF-8.
        let number = char::from(frame).to_string();
        let mut bytes = vec![0xff, 0xf8, 0x70, 0x70];
        bytes.extend(number.as_bytes());
        bytes.extend((BLOCK - 1).to_be_bytes());
        bytes.push(crc::<8>(&bytes, 0x07) as u8);
        bytes.extend([0; 16]);
        let check = crc::<16>(&bytes, 0x8005);
        bytes.extend(check.to_be_bytes());
        file.extend(bytes);
    }
    file
}

/// A PNG file whose header claims a size without pixel data.
fn empty_png(width: u32, height: u32) -> Vec<u8> {
    let mut file = encoded(ImageFormat::Png, 1);
    file[16..20].copy_from_slice(&width.to_be_bytes());
    file[20..24].copy_from_slice(&height.to_be_bytes());
    let check = crc32(&file[12..29]);
    file[29..33].copy_from_slice(&check.to_be_bytes());
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        let crc = crc ^ u32::from(*byte);
        (0..8).fold(crc, |crc, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 })
    })
}

/// A lossless WebP file, whose sides have 14 bits each.
fn empty_webp(side: u32) -> Vec<u8> {
    let mut file = encoded(ImageFormat::WebP, 1);
    let at = file.windows(4).position(|four| four == b"VP8L").expect("lossless") + 9;
    let sides = (side - 1) | (side - 1) << 14;
    file[at..at + 4].copy_from_slice(&sides.to_le_bytes());
    file
}

fn empty_jpeg(side: u16) -> Vec<u8> {
    let mut file = encoded(ImageFormat::Jpeg, 8);
    let at = file.windows(2).position(|two| two == [0xff, 0xc0]).expect("a frame") + 5;
    file[at..at + 4].copy_from_slice(&[side.to_be_bytes(), side.to_be_bytes()].concat());
    file
}

fn empty_gif(side: u16) -> Vec<u8> {
    let mut file = encoded(ImageFormat::Gif, 1);
    file[6..10].copy_from_slice(&[side.to_le_bytes(), side.to_le_bytes()].concat());
    file
}

/// A single test, so that nothing else allocates at the same time.
#[test]
fn peak_memory_is_bounded_by_what_is_decoded() {
    for name in ["tone.flac", "stereo.flac", "tone.ogg", "tone.mp3", "tone.wav"] {
        println!("{}", audio(name, &corpus(name)));
    }
    let silence = silent_flac(250);
    assert!(silence.len() < 8_000);
    println!("{}", audio("flac, 8 channels silent", &silence));
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif] {
        println!("{}", image(&format!("{format:?} of 1 Mpixel"), &encoded(format, 1024)));
    }
    println!("{}", refused("PNG of 2^62 pixels", &empty_png(i32::MAX as u32, i32::MAX as u32)));
    println!("{}", refused("PNG of 10^9 pixels", &empty_png(1 << 15, 1 << 15)));
    println!("{}", refused("WebP of 268 Mpixel", &empty_webp(1 << 14)));
    println!("{}", refused("JPEG of 4 Gpixel", &empty_jpeg(65_535)));
    println!("{}", refused("GIF of 4 Gpixel", &empty_gif(65_535)));
}
