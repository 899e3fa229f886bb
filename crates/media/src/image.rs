//! An image on its way to the tower: decoded, resized to fill a number of soft tokens, cut into patches.

#[cfg(feature = "decode")]
mod decode;
mod patches;
mod resize;
mod size;

pub use patches::Patches;
pub use size::{Budget, CELL, Size};

use std::borrow::Cow;

use crate::MediaError;

/// The most pixels of an image we take: 300 megabytes of them, 400 with an alpha channel.
pub const MOST_PIXELS: u64 = 100_000_000;

/// Pixels of eight bits a channel, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    size: Size,
    pixels: Pixels,
}

/// Bytes as they came: towers take either, and most images are resized before anybody looks at every byte.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pixels {
    /// Red, green and blue.
    Rgb(Vec<u8>),
    /// The same and alpha (not premultiplied); what shines through is white.
    Rgba(Vec<u8>),
}

impl Image {
    /// An image of red, green and blue bytes.
    ///
    /// # Errors
    /// If it is empty, too large, or the bytes are not so many pixels.
    pub fn from_rgb(width: u32, height: u32, rgb: Vec<u8>) -> Result<Self, MediaError> {
        check(width, height, rgb.len(), 3)?;
        Ok(Self { size: Size { width, height }, pixels: Pixels::Rgb(rgb) })
    }

    /// An image with an alpha channel (not premultiplied), laid on white.
    ///
    /// # Errors
    /// If it is empty, too large, or the bytes are not so many pixels.
    pub fn from_rgba(width: u32, height: u32, rgba: Vec<u8>) -> Result<Self, MediaError> {
        check(width, height, rgba.len(), 4)?;
        Ok(Self { size: Size { width, height }, pixels: Pixels::Rgba(rgba) })
    }

    /// Decodes the bytes of a PNG, JPEG, WebP or GIF file (its first frame), turned as its EXIF data says.
    ///
    /// # Errors
    /// If the file is damaged, of another kind, or its image empty or too large.
    #[cfg(feature = "decode")]
    pub fn decode(file: &[u8]) -> Result<Self, MediaError> {
        decode::decode(file)
    }

    /// Its size in pixels.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Red, green and blue of its pixels.
    pub fn rgb(&self) -> Cow<'_, [u8]> {
        match &self.pixels {
            Pixels::Rgb(rgb) => rgb.into(),
            Pixels::Rgba(rgba) => laid_on_white(rgba).into(),
        }
    }

    /// The same and alpha, as the device takes them: it lays them on white itself.
    pub fn rgba(&self) -> Cow<'_, [u8]> {
        match &self.pixels {
            Pixels::Rgb(rgb) => with_alpha(rgb).into(),
            Pixels::Rgba(rgba) => rgba.into(),
        }
    }

    /// Resized so that it nearly fills a number of soft tokens, with sides that are multiples of [`CELL`].
    pub fn fill(&self, budget: Budget) -> Self {
        self.resize(self.size.target(budget))
    }

    /// Resized to a size: bicubic, with antialiasing.
    pub fn resize(&self, size: Size) -> Self {
        Self { pixels: Pixels::Rgba(resize::resize(&self.rgb(), self.size, size)), size }
    }

    /// Cut into squares.
    ///
    /// # Errors
    /// If the sides are no multiples of the squares'.
    pub fn patches(&self, side: u32) -> Result<Patches, MediaError> {
        patches::patches(self, side)
    }
}

/// Pixels that nothing shines through.
fn with_alpha(rgb: &[u8]) -> Vec<u8> {
    let pixels = rgb.as_chunks::<3>().0.iter();
    pixels.flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect()
}

fn laid_on_white(rgba: &[u8]) -> Vec<u8> {
    let mut rgb = vec![0; rgba.len() / 4 * 3];
    let (fours, rest) = rgba.as_chunks::<16>();
    let (out_fours, out_rest) = rgb.as_chunks_mut::<12>();
    for (out, pixels) in out_fours.iter_mut().zip(fours) {
        match opaque(pixels) {
            Some(colours) => *out = colours,
            None => lay_on_white(out, pixels),
        }
    }
    lay_on_white(out_rest, rest);
    rgb
}

/// The colours of four pixels that nothing shines through, which most are: three words of four.
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

fn lay_on_white(out: &mut [u8], rgba: &[u8]) {
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
    if pixels > MOST_PIXELS {
        return Err(MediaError::ImageTooLarge { width, height, limit: MOST_PIXELS });
    }
    if bytes as u64 != pixels * u64::from(channels) {
        return Err(MediaError::WrongLength { bytes, width, height, channels });
    }
    Ok(())
}
