//! NaN and infinity in scales and values.

use proptest::prelude::*;
use rullama_gguf::{
    DType, GgufError, Writer,
    quant::{dequantize, first_not_finite, quantize},
};

use crate::support::open;

const INFINITY: [u8; 2] = [0x00, 0x7C];
const NAN: [u8; 2] = [0x01, 0x7E];

/// Offsets of the f16 scales of a block.
fn scales(dtype: DType) -> &'static [usize] {
    match dtype {
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
        DType::Q2_K => &[80, 82],
        DType::Q3_K => &[108],
        DType::Q6_K => &[208],
        DType::TQ1_0 => &[52],
        DType::TQ2_0 => &[64],
        DType::Q8_0 | DType::Q4_0 | DType::Q5_0 | DType::IQ4_NL | DType::IQ4_XS => &[0],
        DType::IQ2_S | DType::IQ3_XXS | DType::IQ3_S | DType::F16 => &[0],
        _ => &[],
    }
}

/// Writes `bad` into row 2 of 3 of a tensor and expects an error that names it.
fn check(dtype: DType, at: usize, bad: &[u8]) {
    let (n, b) = (dtype.block_elements(), dtype.block_bytes());
    // Bytes 0x11: no level is zero, no scale is special.
    let mut bytes = vec![0x11; 2 * b * 3];
    let start = 5 * b + at;
    bytes[start..start + bad.len()].copy_from_slice(bad);
    let file =
        Writer::new().tensor("t", &[2 * n as u64, 3], dtype, bytes.clone()).finish().unwrap();
    let gguf = open(file).unwrap();
    let tensor = gguf.tensor("t").unwrap();
    let numbers = pollster::block_on(gguf.rows_f32(tensor, 2..3)).unwrap();
    assert!(numbers[..n].iter().all(|x| x.is_finite()), "{dtype}");
    assert!(numbers[n..].iter().any(|x| !x.is_finite()), "{dtype}");
    tensor.check_finite(0, &bytes[..4 * b]).unwrap();
    for (first_row, from) in [(0, 0), (1, 2 * b), (2, 4 * b)] {
        let error = tensor.check_finite(first_row, &bytes[from..]).unwrap_err();
        let expected = matches!(&error, GgufError::NotFinite { tensor, row: 2, column }
            if tensor == "t" && *column >= n as u64);
        assert!(expected, "{dtype}: {error:?}");
    }
}

#[test]
fn infinity_in_scales() {
    for dtype in DType::ALL {
        scales(dtype).iter().for_each(|&at| check(dtype, at, &INFINITY));
    }
}

#[test]
fn nan_in_scales() {
    for dtype in DType::ALL {
        scales(dtype).iter().for_each(|&at| check(dtype, at, &NAN));
    }
}

#[test]
fn nan_and_infinity_in_floats() {
    check(DType::F32, 0, &f32::NAN.to_le_bytes());
    check(DType::F32, 0, &f32::NEG_INFINITY.to_le_bytes());
    check(DType::F64, 0, &f64::NAN.to_le_bytes());
    // Finite as f64, infinite as f32.
    check(DType::F64, 0, &1e300f64.to_le_bytes());
    check(DType::BF16, 0, &[0x80, 0x7F]);
}

#[test]
fn exponents_too_large() {
    check(DType::MXFP4, 0, &[255, 0x77]);
    check(DType::MXFP4, 0, &[253, 0x77]);
}

#[test]
fn formats_without_a_decoder_cannot_be_checked() {
    let result = first_not_finite(DType::Q8_K, &[0; 292]);
    assert!(matches!(result, Err(GgufError::NoDecoder { .. })));
    let result = first_not_finite(DType::Q4_0, &[0; 19]);
    assert!(matches!(result, Err(GgufError::BlockLength { .. })));
}

proptest! {
    /// Decoders accept any bytes, and the quick check agrees with checking every decoded value.
    #[test]
    fn quick_check_agrees_with_decoding(bytes in prop::collection::vec(any::<u8>(), 292 * 2)) {
        for dtype in DType::ALL.into_iter().filter(|t| t.decodable()) {
            let blocks = bytes.len() / dtype.block_bytes();
            let bytes = &bytes[..blocks * dtype.block_bytes()];
            let mut numbers = vec![0.0; blocks * dtype.block_elements()];
            dequantize(dtype, bytes, &mut numbers).unwrap();
            let expected = numbers.iter().position(|x| !x.is_finite());
            prop_assert_eq!(first_not_finite(dtype, bytes).unwrap(), expected, "{}", dtype);
        }
    }
}

#[test]
fn finite_tensors_pass() {
    for dtype in DType::ALL.into_iter().filter(|t| t.encodable()) {
        let bytes = quantize(dtype, &crate::support::weights(1024, 3)).unwrap();
        assert_eq!(first_not_finite(dtype, &bytes).unwrap(), None, "{dtype}");
    }
}
