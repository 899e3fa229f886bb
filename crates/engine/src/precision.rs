//! How caches keep numbers: as they are, as halves, or as bytes with a scale. What a kernel stores and what the CPU rounds to
//! is defined here.
//!
//! Q8: all bytes (signed) come first, then one f32 scale per group of 32 neighbours, `largest |x| / 127`.

use half::f16;

use crate::graph::Element;

/// Neighbours that share a scale.
pub(crate) const Q8_GROUP: usize = 32;

/// Numbers as the device keeps them.
///
/// # Panics
/// If the element holds no such numbers, or a Q8 group is not whole.
pub(crate) fn encode(element: Element, numbers: &[f32]) -> Vec<u8> {
    match element {
        Element::F32 => bytemuck::cast_slice(numbers).to_vec(),
        Element::F16 => {
            numbers.iter().flat_map(|x| f16::from_f32(*x).to_bits().to_le_bytes()).collect()
        }
        Element::Q8 => {
            let (mut bytes, mut scales) = (Vec::with_capacity(numbers.len()), Vec::new());
            for group in groups(numbers) {
                let (scale, inverse) = q8_scale(group);
                // Out of range and NaN saturate.
                bytes.extend(group.iter().map(|x| q8_byte(*x, inverse).to_le_bytes()[0]));
                scales.extend(scale.to_le_bytes());
            }
            bytes.extend(scales);
            bytes
        }
        other => panic!("{other:?} holds no numbers of a cache"),
    }
}

/// The `len` numbers that the device keeps as these bytes.
///
/// # Panics
/// If the element holds no such numbers, or there are too few bytes.
pub(crate) fn decode(element: Element, bytes: &[u8], len: usize) -> Vec<f32> {
    match element {
        Element::F32 => bytemuck::pod_collect_to_vec(&bytes[..len * 4]),
        Element::F16 => {
            let halves = bytes[..len * 2].chunks_exact(2);
            halves.map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
        }
        Element::Q8 => {
            let (bytes, scales) = bytes.split_at(len);
            let scales: Vec<f32> = bytemuck::pod_collect_to_vec(&scales[..len / Q8_GROUP * 4]);
            let number = |(i, b): (usize, &u8)| f32::from(b.cast_signed()) * scales[i / Q8_GROUP];
            bytes.iter().enumerate().map(number).collect()
        }
        other => panic!("{other:?} holds no numbers of a cache"),
    }
}

/// Rounds numbers to what the element can hold.
///
/// # Panics
/// If a Q8 group is not whole.
pub(crate) fn round(element: Element, numbers: &mut [f32]) {
    if matches!(element, Element::F16 | Element::Q8) {
        let rounded = decode(element, &encode(element, numbers), numbers.len());
        numbers.copy_from_slice(&rounded);
    }
}

fn groups(numbers: &[f32]) -> std::slice::ChunksExact<'_, f32> {
    assert!(
        numbers.len().is_multiple_of(Q8_GROUP),
        "{} numbers are no whole groups",
        numbers.len()
    );
    numbers.chunks_exact(Q8_GROUP)
}

/// A group's scale, and what its numbers are multiplied with before they are rounded.
fn q8_scale(group: &[f32]) -> (f32, f32) {
    let largest = group.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    (largest / 127.0, if largest > 0.0 { 127.0 / largest } else { 0.0 })
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn q8_byte(x: f32, inverse: f32) -> i8 {
    (x * inverse).round_ties_even() as i8
}

#[cfg(test)]
mod tests {
    use super::{decode, encode, round};
    use crate::graph::Element;

    #[test]
    fn numbers_survive_to_their_precision() {
        let numbers: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 0.37).collect();
        for (element, bytes, far) in
            [(Element::F32, 256, 0.0), (Element::F16, 128, 0.01), (Element::Q8, 72, 0.07)]
        {
            let kept = encode(element, &numbers);
            assert_eq!(kept.len(), bytes, "{element:?}");
            let back = decode(element, &kept, numbers.len());
            let worst = back.iter().zip(&numbers).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst <= far, "{element:?} is {worst} off");
            let mut again = back.clone();
            round(element, &mut again);
            let moved = again.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(moved < 1e-5, "{element:?}: rounding twice moves by {moved}");
        }
    }

    #[test]
    fn q8_holds_its_largest_number_and_zeros() {
        let mut numbers = [0.0; 64];
        numbers[40] = -3.5;
        round(Element::Q8, &mut numbers);
        assert!((numbers[40] + 3.5).abs() < 1e-6);
        assert!(numbers.iter().enumerate().all(|(i, x)| i == 40 || *x == 0.0));
    }
}
