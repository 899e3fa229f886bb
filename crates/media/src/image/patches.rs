//! Patches of an image, as the vision encoders read them.

use super::{Image, on_white};
use crate::MediaError;

/// Scales bytes to 0..=1. The reference multiplies, too: a division may differ in the last bit.
const SCALE: f32 = 1.0 / 255.0;

/// An image as rows of patches, each of `side · side · 3` values in 0..=1 in the order row, column, channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// Patches per row.
    pub columns: u32,
    /// Rows of patches.
    pub rows: u32,
    /// The values, patch by patch, row by row.
    pub values: Vec<f32>,
}

impl Patches {
    /// Number of patches.
    pub fn count(&self) -> usize {
        self.columns as usize * self.rows as usize
    }
}

pub(super) fn patches(image: &Image, side: u32) -> Result<Patches, MediaError> {
    let size = image.size();
    if side == 0 || !size.width.is_multiple_of(side) || !size.height.is_multiple_of(side) {
        return Err(MediaError::NotWhole { width: size.width, height: size.height, side });
    }
    let (columns, rows) = (size.width / side, size.height / side);
    let (rgba, width, side) = (image.rgba(), size.width as usize, side as usize);
    let pixels = rgba.as_chunks::<4>().0;
    let mut values = Vec::with_capacity(pixels.len() * 3);
    for row in 0..rows as usize {
        for column in 0..columns as usize {
            for inside in 0..side {
                let start = (row * side + inside) * width + column * side;
                let strip = pixels[start..start + side].iter();
                let values_of = |pixel: &_| on_white(*pixel).map(|byte| f32::from(byte) * SCALE);
                values.extend(strip.flat_map(values_of));
            }
        }
    }
    Ok(Patches { columns, rows, values })
}
