//! Squares of an image, as the towers read them.

use super::{Image, on_white};
use crate::MediaError;

/// Bytes to numbers from 0 to 1; a product, as the reference has it, not a quotient, whose last bit may differ.
const SCALE: f32 = 1.0 / 255.0;

/// An image as rows of squares, each of `side · side · 3` numbers from 0 to 1 in the order row, column, channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// Squares from left to right.
    pub columns: u32,
    /// Squares from top to bottom.
    pub rows: u32,
    /// The numbers, square by square, row by row.
    pub values: Vec<f32>,
}

impl Patches {
    /// How many squares.
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
                let numbers = |pixel: &_| on_white(*pixel).map(|byte| f32::from(byte) * SCALE);
                values.extend(strip.flat_map(numbers));
            }
        }
    }
    Ok(Patches { columns, rows, values })
}
