//! A small file cut at every byte.

use rullama_gguf::{DType, GgufError, StringArray, Writer};

use crate::support::open;

fn small_file() -> Vec<u8> {
    let strings: StringArray = ["a", "", "ccc"].into_iter().collect();
    Writer::new()
        .kv("general.architecture", "test")
        .kv("a.u8", 1u8)
        .kv("a.f64", 1.5f64)
        .kv("a.bool", true)
        .kv("a.strings", strings)
        .kv("a.numbers", vec![1i32, 2, 3])
        .tensor("first", &[8, 2], DType::F32, vec![0; 64])
        .tensor("second", &[32], DType::Q4_0, vec![0; 18])
        .finish()
        .unwrap()
}

#[test]
fn every_truncation_is_an_error() {
    let file = small_file();
    let gguf = open(file.clone()).unwrap();
    let last = gguf.tensor("second").unwrap();
    let data_end = last.offset() + last.nbytes();
    assert_eq!(data_end.next_multiple_of(32), file.len() as u64);
    for cut in 0..file.len() {
        let result = open(file[..cut].to_vec());
        // Padding after the last tensor is optional.
        if cut as u64 >= data_end {
            assert!(result.is_ok(), "{cut}");
            continue;
        }
        let error = result.expect_err("a cut file was opened");
        let expected = matches!(
            error,
            GgufError::Truncated { .. }
                | GgufError::StringPastEnd { .. }
                | GgufError::ArrayPastEnd { .. }
                | GgufError::KeyCount { .. }
                | GgufError::TensorCount { .. }
                | GgufError::TensorPastEnd { .. }
        );
        assert!(expected, "{cut}: {error:?}");
        let text = error.to_string();
        assert!(text.contains("truncated"), "{cut}: {text}");
    }
}

#[test]
fn a_file_without_tensors_may_end_without_padding() {
    let file = Writer::new().kv("key", 1u8).finish().unwrap();
    assert_ne!(file.len() % 32, 0);
    assert_eq!(open(file).unwrap().u32("key").unwrap(), 1);
}
