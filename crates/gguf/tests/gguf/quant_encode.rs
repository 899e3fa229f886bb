//! Encoders: simple formats bit for bit, the others by their error.

use proptest::prelude::*;
use rullama_gguf::{
    DType, GgufError,
    quant::{dequantize, quantize},
};
use rullama_testkit::golden;
use safetensors::SafeTensors;

use crate::support::weights;

fn round_trip(dtype: DType, values: &[f32]) -> Vec<f32> {
    let mut out = vec![f32::NAN; values.len()];
    dequantize(dtype, &quantize(dtype, values).unwrap(), &mut out).unwrap();
    out
}

/// Root mean square error, relative to the values.
fn relative_error(values: &[f32], decoded: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let error: f64 = values.iter().zip(decoded).map(|(x, y)| square(x - y)).sum();
    (error / values.iter().map(|&x| square(x)).sum::<f64>()).sqrt()
}

fn encodable() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|t| t.encodable())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

#[test]
fn simple_formats_match_the_reference_encoder() {
    let file = golden("quant_blocks.safetensors");
    let tensors = SafeTensors::deserialize(&file).unwrap();
    let source = floats(tensors.tensor("source").unwrap().data());
    for dtype in
        [DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1]
    {
        let raw = tensors.tensor(&format!("{dtype}.raw")).unwrap();
        assert!(quantize(dtype, &source).unwrap() == raw.data(), "{dtype} differs");
    }
}

#[test]
fn searched_formats_are_close_to_the_reference_encoder() {
    let file = golden("quant_blocks.safetensors");
    let tensors = SafeTensors::deserialize(&file).unwrap();
    let source = floats(tensors.tensor("source").unwrap().data());
    for dtype in encodable() {
        let Ok(decoded) = tensors.tensor(&format!("{dtype}.deq")) else {
            assert!(matches!(dtype, DType::F32 | DType::NVFP4), "{dtype} has no golden blocks");
            continue;
        };
        let theirs = relative_error(&source, &floats(decoded.data()));
        let ours = relative_error(&source, &round_trip(dtype, &source));
        assert!(ours < 1.5 * theirs + 1e-9, "{dtype}: {ours} against {theirs}");
    }
}

#[test]
fn errors_are_as_small_as_the_bits_allow() {
    let bound = |dtype| match dtype {
        DType::F32 => 0.0,
        DType::F16 => 0.0005,
        DType::BF16 => 0.004,
        DType::Q8_0 => 0.01,
        DType::Q6_K => 0.03,
        DType::Q5_0 | DType::Q5_1 | DType::Q5_K => 0.05,
        DType::Q4_0 | DType::Q4_1 | DType::Q4_K | DType::IQ4_NL | DType::IQ4_XS => 0.1,
        DType::NVFP4 | DType::MXFP4 => 0.15,
        DType::Q3_K => 0.2,
        DType::Q2_K => 0.35,
        other => panic!("no bound for {other}"),
    };
    for dtype in encodable() {
        for scale in [1.0, 1e-2, 100.0] {
            if dtype == DType::NVFP4 && scale < 1.0 {
                // The smallest scale is 2^-10: small weights would need a scale for the whole tensor.
                continue;
            }
            let values: Vec<f32> = weights(4096, 7).iter().map(|x| x * scale).collect();
            let error = relative_error(&values, &round_trip(dtype, &values));
            assert!(error <= bound(dtype), "{dtype} at {scale}: {error}");
        }
    }
}

#[test]
fn zeros_and_outliers_are_kept() {
    for dtype in encodable() {
        assert!(round_trip(dtype, &[0.0; 512]).iter().all(|&x| x == 0.0), "{dtype}");
        // A single large element must not be lost, whatever its sign.
        for x in [1.0, -1.0, 0.037, -250.0] {
            let mut values = [0.0; 256];
            values[100] = x;
            let decoded = round_trip(dtype, &values)[100];
            assert!((decoded - x).abs() < 0.3 * x.abs(), "{dtype}: {x} became {decoded}");
        }
    }
}

#[test]
fn formats_without_an_encoder_are_refused() {
    for dtype in DType::ALL.into_iter().filter(|t| !t.encodable()) {
        let result = quantize(dtype, &[0.0; 256]);
        assert!(matches!(result, Err(GgufError::NoEncoder { .. })), "{dtype}");
    }
}

proptest! {
    /// Any bits: no panic, and finite values of reasonable size stay finite.
    #[test]
    fn encoders_accept_any_bits(bits in prop::collection::vec(any::<u32>(), 256)) {
        let values: Vec<f32> = bits.iter().map(|&b| f32::from_bits(b)).collect();
        let reasonable: Vec<f32> = values.iter().map(|x| if x.abs() < 1e4 { *x } else { 1.0 }).collect();
        for dtype in encodable() {
            round_trip(dtype, &values);
            let decoded = round_trip(dtype, &reasonable);
            prop_assert!(decoded.iter().all(|x| x.is_finite()), "{dtype}");
        }
    }

    /// The error of every element is at most one quantisation step.
    #[test]
    fn errors_are_at_most_one_step(
        values in prop::collection::vec(-1f32..1.0, 256),
        offset in -2f32..2.0,
    ) {
        let values: Vec<f32> = values.iter().map(|x| x + offset).collect();
        let max = values.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
        for (dtype, steps) in [(DType::Q8_0, 200.0), (DType::Q6_K, 28.0), (DType::Q5_K, 14.0), (DType::Q4_K, 7.0), (DType::Q4_0, 7.0)] {
            for (x, y) in values.iter().zip(round_trip(dtype, &values)) {
                prop_assert!((x - y).abs() <= max / steps, "{dtype}: {x} became {y}");
            }
        }
    }
}
