//! Decoders against blocks decoded by another implementation, bit for bit.

use rullama_gguf::{
    DType, GgufError,
    quant::{dequantize, quantize},
};
use rullama_testkit::golden;
use safetensors::SafeTensors;

#[test]
fn golden_blocks_are_equal_to_the_last_bit() {
    check_file("quant_blocks.safetensors", 20);
}

/// Every entry of their code books: see `tools/code-books`.
#[test]
fn golden_blocks_of_the_smallest_formats() {
    check_file("quant_blocks_iq.safetensors", 4);
}

fn check_file(name: &str, types: usize) {
    let file = golden(name);
    let tensors = SafeTensors::deserialize(&file).unwrap();
    let names: Vec<_> =
        tensors.names().iter().filter_map(|n| n.strip_suffix(".raw")).map(str::to_owned).collect();
    assert_eq!(names.len(), types);
    for name in names {
        let dtype = DType::ALL.into_iter().find(|t| t.name() == name).unwrap();
        let raw = tensors.tensor(&format!("{name}.raw")).unwrap();
        let expected = tensors.tensor(&format!("{name}.deq")).unwrap();
        let mut numbers = vec![0.0; expected.data().len() / 4];
        dequantize(dtype, raw.data(), &mut numbers).unwrap();
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert!(bytes == expected.data(), "{name} differs");
    }
}

/// The block `b[k] = 37 k + 11` with the f16 values at `halves` set to 0.5 and 0.25.
fn pattern(dtype: DType, halves: &[usize]) -> Vec<u8> {
    let mut block: Vec<u8> =
        (0..dtype.block_bytes()).map(|k| ((37 * k + 11) % 256) as u8).collect();
    for (&at, half) in halves.iter().zip([0x3800u16, 0x3400]) {
        block[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    block
}

/// Elements 0, 1, N/2 and N-1, and the sum of all.
fn check(dtype: DType, block: &[u8], expected: [f32; 5]) {
    let n = dtype.block_elements();
    let mut x = vec![0.0; n];
    dequantize(dtype, block, &mut x).unwrap();
    let found = [x[0], x[1], x[n / 2], x[n - 1], x.iter().sum()];
    assert_eq!(found, expected, "{dtype}");
}

#[test]
fn pattern_blocks() {
    use DType::*;
    for (dtype, halves, expected) in [
        (Q8_0, &[0][..], [42.5, 61.0, -45.5, -24.0, -88.0]),
        (Q4_0, &[0], [-1.5, 1.0, -1.5, 0.0, -10.5]),
        (Q4_1, &[0, 2], [7.75, 2.25, 4.75, 6.25, 130.5]),
        (Q5_0, &[0], [4.5, -1.0, 7.0, 0.5, 7.5]),
        (Q5_1, &[0, 2], [9.75, 12.25, 9.75, 2.75, 260.5]),
        (Q2_K, &[80, 82], [16.5, 0.0, 3.75, 2.25, 1029.5]),
        (Q3_K, &[108], [40.5, -54.0, 1.0, 21.0, 479.0]),
        (Q4_K, &[0, 2], [157.75, -12.75, 211.5, 24.25, 27220.0]),
        (Q5_K, &[0, 2], [405.75, -12.75, 523.5, 54.25, 58108.0]),
        (Q6_K, &[208], [-715.5, 848.0, -175.5, -30.0, 2306.0]),
        (IQ4_NL, &[0], [-17.5, 12.5, -17.5, 0.5, -128.5]),
        (IQ4_XS, &[0], [32.5, -0.5, -292.5, -8.0, -5502.5]),
    ] {
        check(dtype, &pattern(dtype, halves), expected);
    }
    let mut block = pattern(MXFP4, &[]);
    block[0] = 127;
    check(MXFP4, &block, [0.0, 3.0, 1.5, 3.0, 12.5]);
    let mut block = pattern(NVFP4, &[]);
    block[..4].copy_from_slice(&[0x38, 0x40, 0x30, 0x3C]);
    check(NVFP4, &block, [-6.0, 2.0, -3.0, 0.75, 3.75]);
}

#[test]
fn every_scale_of_the_small_floats() {
    for byte in 0..=255u8 {
        let mut block = [0x11; 17];
        block[0] = byte;
        let mut x = [0.0; 32];
        dequantize(DType::MXFP4, &block, &mut x).unwrap();
        assert_eq!(f64::from(x[31]), 2f64.powi(i32::from(byte) - 128), "MXFP4 {byte}");

        let mut block = [0x11; 36];
        block[2] = byte;
        let mut x = [0.0; 64];
        dequantize(DType::NVFP4, &block, &mut x).unwrap();
        let (e, m) = (i32::from(byte >> 3 & 15), f32::from(byte & 7));
        let expected = match (byte, e) {
            (0 | 0x7F, _) => 0.0,
            (_, 0) => m * 2f32.powi(-9) * 0.5,
            _ => (1.0 + m / 8.0) * 2f32.powi(e - 7) * 0.5,
        };
        assert_eq!(x[47], expected, "NVFP4 {byte}");
    }
}

#[test]
fn plain_numbers() {
    fn check(dtype: DType, bytes: &[u8], expected: f32) {
        let mut x = [0.0];
        dequantize(dtype, bytes, &mut x).unwrap();
        assert_eq!(x[0], expected, "{dtype}");
    }
    check(DType::F32, &1.25f32.to_le_bytes(), 1.25);
    check(DType::F64, &0.1f64.to_le_bytes(), 0.1);
    check(DType::I8, &(-3i8).to_le_bytes(), -3.0);
    check(DType::I16, &(-300i16).to_le_bytes(), -300.0);
    check(DType::I32, &(-70_000i32).to_le_bytes(), -70_000.0);
    check(DType::I64, &(1i64 << 40).to_le_bytes(), (1u64 << 40) as f32);
    check(DType::F16, &[0, 0x3C], 1.0);
    check(DType::F16, &[1, 0], 2f32.powi(-24));
    check(DType::BF16, &[0x80, 0x3F], 1.0);
}

#[test]
fn every_half() {
    for bits in 0..=u16::MAX {
        let mut x = [0.0];
        dequantize(DType::F16, &bits.to_le_bytes(), &mut x).unwrap();
        let expected = half::f16::from_bits(bits).to_f32();
        let same =
            if expected.is_nan() { x[0].is_nan() } else { x[0].to_bits() == expected.to_bits() };
        assert!(same, "{bits:#06x}: {} instead of {expected}", x[0]);
    }
}

#[test]
fn wrong_lengths_are_refused() {
    for dtype in DType::ALL {
        let (n, b) = (dtype.block_elements(), dtype.block_bytes());
        for (bytes, elements) in [(b, 2 * n), (2 * b, n), (b + 1, n), (b, n + 1), (0, n), (b, 0)] {
            let result = dequantize(dtype, &vec![0; bytes], &mut vec![0.0; elements]);
            assert!(
                matches!(result, Err(GgufError::BlockLength { .. })),
                "{dtype} {bytes} {elements}"
            );
        }
        let result = dequantize(dtype, &vec![0; 3 * b], &mut vec![0.0; 3 * n]);
        match dtype.decodable() {
            true => result.unwrap(),
            false => assert!(matches!(result, Err(GgufError::NoDecoder { .. })), "{dtype}"),
        }
    }
    assert!(matches!(quantize(DType::Q4_0, &[0.0; 33]), Err(GgufError::BlockLength { .. })));
}
