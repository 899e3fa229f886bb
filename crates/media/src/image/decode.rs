//! Image file decoding with the `image` crate.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageReader, Limits};

use super::{Image, MAX_PIXELS};
use crate::MediaError;

/// Memory limit of a decoder: [`MAX_PIXELS`] of four bytes, and as much again for its own buffers.
const MAX_BYTES: u64 = MAX_PIXELS * 8;

pub(super) fn decode(file: &[u8]) -> Result<Image, MediaError> {
    let mut reader =
        ImageReader::new(Cursor::new(file)).with_guessed_format().map_err(|error| bad(&error))?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| bad(&error))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(MediaError::ImageTooLarge { width, height, limit: MAX_PIXELS });
    }
    // Cameras store sensor rows and an EXIF orientation.
    let orientation = decoder.orientation().ok();
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| bad(&error))?;
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    let (width, height) = (image.width(), image.height());
    if image.color().has_alpha() {
        Image::from_rgba(width, height, image.into_rgba8().into_raw())
    } else {
        Image::from_rgb(width, height, image.into_rgb8().into_raw())
    }
}

fn bad(error: &dyn std::error::Error) -> MediaError {
    MediaError::BadImage { reason: error.to_string() }
}
