//! Image preprocessing: decoding, resizing to a number of soft tokens, patches.

#[cfg(feature = "decode")]
mod decode;
mod patches;
mod resize;
mod size;

pub use patches::Patches;
pub use resize::Filter;
pub use size::{Budget, CELL, Size};

use std::borrow::Cow;

use crate::MediaError;

/// Maximum pixels of an image: 300 MB as RGB, 400 MB as RGBA.
pub const MAX_PIXELS: u64 = 100_000_000;

/// An image with eight bits per channel, row-major.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    size: Size,
    pixels: Pixels,
}

/// RGB or RGBA as decoded: most images are resized first, so converting here would be a wasted pass.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pixels {
    /// Red, green and blue.
    Rgb(Vec<u8>),
    /// Red, green, blue and alpha (not premultiplied), to be blended over white.
    Rgba(Vec<u8>),
}

impl Image {
    /// An image of RGB bytes.
    ///
    /// # Errors
    /// If it is empty, too large, or the byte count does not match the size.
    pub fn from_rgb(width: u32, height: u32, rgb: Vec<u8>) -> Result<Self, MediaError> {
        check(width, height, rgb.len(), 3)?;
        Ok(Self { size: Size { width, height }, pixels: Pixels::Rgb(rgb) })
    }

    /// An image of RGBA bytes (alpha not premultiplied), which is blended over white.
    ///
    /// # Errors
    /// If it is empty, too large, or the byte count does not match the size.
    pub fn from_rgba(width: u32, height: u32, rgba: Vec<u8>) -> Result<Self, MediaError> {
        check(width, height, rgba.len(), 4)?;
        Ok(Self { size: Size { width, height }, pixels: Pixels::Rgba(rgba) })
    }

    /// Decodes a PNG, JPEG, WebP or GIF file (its first frame), rotated according to its EXIF orientation.
    ///
    /// # Errors
    /// If the file is damaged, of another format, or its image empty or too large.
    #[cfg(feature = "decode")]
    pub fn decode(file: &[u8]) -> Result<Self, MediaError> {
        decode::decode(file)
    }

    /// The size in pixels.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The pixels as RGB.
    pub fn rgb(&self) -> Cow<'_, [u8]> {
        match &self.pixels {
            Pixels::Rgb(rgb) => rgb.into(),
            Pixels::Rgba(rgba) => blend_over_white(rgba).into(),
        }
    }

    /// The pixels as RGBA; the GPU kernel that reads them blends them over white.
    pub fn rgba(&self) -> Cow<'_, [u8]> {
        match &self.pixels {
            Pixels::Rgb(rgb) => with_alpha(rgb).into(),
            Pixels::Rgba(rgba) => rgba.into(),
        }
    }

    /// Resized so that it nearly fills a number of soft tokens, with sides that are multiples of [`CELL`].
    pub fn fill(&self, budget: Budget) -> Self {
        self.resize(self.size.target(budget), Filter::Bicubic)
    }

    /// Resized to `size`, with antialiasing.
    pub fn resize(&self, size: Size, filter: Filter) -> Self {
        let rgba = resize::resize(&self.rgb(), self.size, size, filter);
        Self { pixels: Pixels::Rgba(rgba), size }
    }

    /// Split into square patches.
    ///
    /// # Errors
    /// If the sides are not multiples of `side`.
    pub fn patches(&self, side: u32) -> Result<Patches, MediaError> {
        patches::patches(self, side)
    }
}

/// RGB as opaque RGBA.
fn with_alpha(rgb: &[u8]) -> Vec<u8> {
    let pixels = rgb.as_chunks::<3>().0.iter();
    pixels.flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect()
}

fn blend_over_white(rgba: &[u8]) -> Vec<u8> {
    let mut rgb = vec![0; rgba.len() / 4 * 3];
    let (fours, rest) = rgba.as_chunks::<16>();
    let (out_fours, out_rest) = rgb.as_chunks_mut::<12>();
    for (out, pixels) in out_fours.iter_mut().zip(fours) {
        match opaque(pixels) {
            Some(colours) => *out = colours,
            None => blend_pixels(out, pixels),
        }
    }
    blend_pixels(out_rest, rest);
    rgb
}

/// RGB of four pixels if all are opaque, which is the common case.
fn opaque(pixels: &[u8; 16]) -> Option<[u8; 12]> {
    let word =
        |i: usize| u32::from_le_bytes([pixels[i], pixels[i + 1], pixels[i + 2], pixels[i + 3]]);
    let (a, b, c, d) = (word(0), word(4), word(8), word(12));
    if a & b & c & d < 0xff00_0000 {
        return None;
    }
    let words = [a & 0x00ff_ffff | b << 24, b >> 8 & 0xffff | c << 16, c >> 16 & 0xff | d << 8];
    let mut out = [0; 12];
    for (out, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *out = word.to_le_bytes();
    }
    Some(out)
}

fn blend_pixels(out: &mut [u8], rgba: &[u8]) {
    for (out, pixel) in out.as_chunks_mut::<3>().0.iter_mut().zip(rgba.as_chunks::<4>().0) {
        *out = on_white(*pixel);
    }
}

fn on_white([colours @ .., alpha]: [u8; 4]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    colours.map(|value| ((u32::from(value) * alpha + 255 * (255 - alpha) + 127) / 255) as u8)
}

fn check(width: u32, height: u32, bytes: usize, channels: u32) -> Result<(), MediaError> {
    if width == 0 || height == 0 {
        return Err(MediaError::EmptyImage { width, height });
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MAX_PIXELS {
        return Err(MediaError::ImageTooLarge { width, height, limit: MAX_PIXELS });
    }
    if bytes as u64 != pixels * u64::from(channels) {
        return Err(MediaError::WrongLength { bytes, width, height, channels });
    }
    Ok(())
}
