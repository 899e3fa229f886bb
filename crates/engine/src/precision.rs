//! Precisions of KV caches: f32, f16, or int8 with scales. Defines what kernels store and what the CPU rounds to.
//!
//! Q8: all signed bytes come first, then one f32 scale per group of 32 adjacent elements, `max |x| / 127`.

use half::f16;

use crate::graph::Element;

/// Elements that share a scale.
pub(crate) const Q8_GROUP: usize = 32;

/// Values in the device's format.
///
/// # Panics
/// If a cache cannot have this element type, or a Q8 group is incomplete.
pub(crate) fn encode(element: Element, values: &[f32]) -> Vec<u8> {
    match element {
        Element::F32 => bytemuck::cast_slice(values).to_vec(),
        Element::F16 => {
            values.iter().flat_map(|x| f16::from_f32(*x).to_bits().to_le_bytes()).collect()
        }
        Element::Q8 => {
            let (mut bytes, mut scales) = (Vec::with_capacity(values.len()), Vec::new());
            for group in groups(values) {
                let (scale, inverse) = q8_scale(group);
                // Out-of-range values and NaN saturate.
                bytes.extend(group.iter().map(|x| q8_byte(*x, inverse).to_le_bytes()[0]));
                scales.extend(scale.to_le_bytes());
            }
            bytes.extend(scales);
            bytes
        }
        other => panic!("{other:?} is not a cache precision"),
    }
}

/// Decodes `len` values from the device's format.
///
/// # Panics
/// If a cache cannot have this element type, or there are too few bytes.
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
            let value = |(i, b): (usize, &u8)| f32::from(b.cast_signed()) * scales[i / Q8_GROUP];
            bytes.iter().enumerate().map(value).collect()
        }
        other => panic!("{other:?} is not a cache precision"),
    }
}

/// Rounds values to the element's precision.
///
/// # Panics
/// If a Q8 group is incomplete.
pub(crate) fn round(element: Element, values: &mut [f32]) {
    if matches!(element, Element::F16 | Element::Q8) {
        let rounded = decode(element, &encode(element, values), values.len());
        values.copy_from_slice(&rounded);
    }
}

fn groups(values: &[f32]) -> std::slice::ChunksExact<'_, f32> {
    assert!(
        values.len().is_multiple_of(Q8_GROUP),
        "{} values are not whole groups of {Q8_GROUP}",
        values.len()
    );
    values.chunks_exact(Q8_GROUP)
}

/// A group's scale, and its inverse for quantising.
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
    fn values_round_trip_within_their_precision() {
        let values: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 0.37).collect();
        for (element, bytes, tolerance) in
            [(Element::F32, 256, 0.0), (Element::F16, 128, 0.01), (Element::Q8, 72, 0.07)]
        {
            let encoded = encode(element, &values);
            assert_eq!(encoded.len(), bytes, "{element:?}");
            let decoded = decode(element, &encoded, values.len());
            let worst = decoded.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst <= tolerance, "{element:?} is {worst} off");
            let mut again = decoded.clone();
            round(element, &mut again);
            let moved = again.iter().zip(&decoded).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(moved < 1e-5, "{element:?}: rounding twice changes values by {moved}");
        }
    }

    #[test]
    fn q8_keeps_its_largest_value_and_zeros() {
        let mut values = [0.0; 64];
        values[40] = -3.5;
        round(Element::Q8, &mut values);
        assert!((values[40] + 3.5).abs() < 1e-6);
        assert!(values.iter().enumerate().all(|(i, x)| i == 40 || *x == 0.0));
    }
}
