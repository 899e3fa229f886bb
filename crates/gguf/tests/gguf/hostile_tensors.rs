//! Invalid values in the tensor table.

use rullama_gguf::{DType, GgufError};

use crate::support::{Counting, Raw, open, refuses};

const F32: u32 = 0;
const Q4_0: u32 = 2;

/// A file with one tensor and `data` bytes for it.
fn one(dims: &[u64], dtype: u32, offset: u64, data: usize) -> Vec<u8> {
    Raw::header(1, 0).tensor("t", dims, dtype, offset).data(data)
}

#[test]
fn valid_tensors_are_read() {
    let gguf = open(one(&[8, 2, 3], F32, 0, 192)).unwrap();
    let t = gguf.tensor("t").unwrap();
    assert_eq!((t.name(), t.dims(), t.dtype()), ("t", &[8, 2, 3][..], DType::F32));
    assert_eq!((t.elements(), t.row_len(), t.rows()), (48, 8, 6));
    assert_eq!((t.nbytes(), t.row_bytes(), t.offset()), (192, 32, 96));
    assert!(gguf.tensor("u").is_none());
}

#[test]
fn no_dimensions() {
    refuses!(one(&[], F32, 0, 64), GgufError::NoDimensions { tensor } if tensor == "t");
}

#[test]
fn nine_dimensions() {
    refuses!(one(&[1; 9], F32, 0, 64), GgufError::TooManyDimensions { count: 9, .. });
    refuses!(one(&[1; 5], F32, 0, 64), GgufError::TooManyDimensions { count: 5, .. });
    let file = Raw::header(1, 0).string("t").u32(u32::MAX).data(64);
    refuses!(file, GgufError::TooManyDimensions { count: 0xFFFF_FFFF, .. });
}

#[test]
fn a_dimension_of_zero() {
    refuses!(one(&[0], F32, 0, 64), GgufError::ZeroDimension { axis: 0, .. });
    refuses!(one(&[32, 4, 0], F32, 0, 64), GgufError::ZeroDimension { axis: 2, .. });
    // Zero must not hide an overflow.
    refuses!(one(&[1 << 40, 1 << 40, 0], F32, 0, 64), GgufError::ZeroDimension { .. });
}

#[test]
fn dimension_product_overflowing_64_bits() {
    for dims in [&[1 << 32, 1 << 32][..], &[u64::MAX, 2], &[1 << 16; 4], &[1 << 63, 1, 1, 2]] {
        refuses!(one(dims, F32, 0, 64), GgufError::ElementsOverflow { dims: d, .. } if d == dims);
    }
}

#[test]
fn byte_count_overflowing_64_bits() {
    for dims in [&[1 << 62][..], &[1 << 31, 1 << 32]] {
        refuses!(one(dims, F32, 0, 64), GgufError::BytesOverflow { .. });
    }
}

#[test]
fn dimension_product_overflowing_32_bits() {
    // Elements or bytes are a small number modulo 2^32.
    for dims in [
        &[1 << 16, 1 << 16][..],
        &[1 << 30],
        &[(1 << 32) + 8],
        &[(1 << 30) + 8],
        &[8, (1 << 32) + 1],
    ] {
        refuses!(one(dims, F32, 0, 64), GgufError::TensorPastEnd { .. });
    }
}

#[test]
fn rows_that_are_no_multiple_of_the_block() {
    refuses!(one(&[31], Q4_0, 0, 64), GgufError::RaggedRow { row_len: 31, dtype: DType::Q4_0, .. });
    // The product is a multiple, the row is not.
    refuses!(one(&[16, 2], Q4_0, 0, 64), GgufError::RaggedRow { row_len: 16, .. });
    refuses!(one(&[128, 2], 12, 0, 300), GgufError::RaggedRow { dtype: DType::Q4_K, .. });
}

#[test]
fn offset_past_the_end() {
    for offset in [64, 1 << 32, 1 << 62, u64::MAX - 31] {
        refuses!(one(&[16], F32, offset, 64), GgufError::TensorPastEnd { offset: o, nbytes: 64, .. } if *o == offset);
    }
}

#[test]
fn size_past_the_end() {
    refuses!(one(&[17], F32, 0, 64), GgufError::TensorPastEnd { offset: 0, nbytes: 68, .. });
    refuses!(one(&[1 << 60], F32, 1 << 63, 64), GgufError::TensorPastEnd { .. });
    assert!(open(one(&[16], F32, 0, 64)).is_ok());
}

#[test]
fn unaligned_offset() {
    for offset in [1, 4, 16, 33] {
        refuses!(
            one(&[4], F32, offset, 256),
            GgufError::UnalignedTensor { offset: o, alignment: 32, .. } if *o == offset
        );
    }
}

#[test]
fn overlapping_tensors() {
    let two = |first: u64, second: u64| {
        let raw = Raw::header(2, 0).tensor("a", &[16], F32, first).tensor("b", &[16], F32, second);
        raw.data(256)
    };
    refuses!(two(0, 0), GgufError::OverlappingTensors { .. });
    refuses!(two(0, 32), GgufError::OverlappingTensors { first, second } if (&**first, &**second) == ("a", "b"));
    refuses!(two(64, 32), GgufError::OverlappingTensors { first, second } if (&**first, &**second) == ("b", "a"));
    for (first, second) in [(0, 64), (64, 0), (0, 96), (192, 0)] {
        assert!(open(two(first, second)).is_ok(), "{first} {second} are apart");
    }
}

#[test]
fn one_tensor_inside_another() {
    let raw = Raw::header(3, 0).tensor("big", &[64], F32, 0);
    let file = raw.tensor("in", &[8], F32, 64).tensor("after", &[8], F32, 256).data(512);
    refuses!(file, GgufError::OverlappingTensors { .. });
}

#[test]
fn duplicate_tensors() {
    let two = |second: u64| {
        Raw::header(2, 0).tensor("t", &[8], F32, 0).tensor("t", &[8], F32, second).data(256)
    };
    refuses!(two(32), GgufError::DuplicateTensor { tensor } if tensor == "t");
    refuses!(two(0), GgufError::DuplicateTensor { .. });
}

#[test]
fn unknown_types() {
    for id in [41, 42, 43, 255, u32::MAX] {
        refuses!(one(&[32], id, 0, 256), GgufError::UnknownDtype { id: i, .. } if *i == id);
    }
}

#[test]
fn retired_types() {
    for id in [4, 5, 31, 32, 33, 36, 37, 38] {
        refuses!(one(&[32], id, 0, 256), GgufError::RetiredDtype { id: i, .. } if *i == id);
    }
}

#[test]
fn every_known_type_has_its_size() {
    for dtype in DType::ALL {
        let elements = dtype.block_elements() as u64 * 2;
        let bytes = dtype.block_bytes() * 2;
        let gguf = open(one(&[elements], dtype.id(), 0, bytes)).unwrap();
        let tensor = gguf.tensor("t").unwrap();
        assert_eq!((tensor.dtype(), tensor.nbytes()), (dtype, bytes as u64));
        refuses!(one(&[elements], dtype.id(), 0, bytes - 1), GgufError::TensorPastEnd { .. });
    }
}

#[test]
fn names_too_long_or_not_utf8() {
    let named = |name: &str| Raw::header(1, 0).tensor(name, &[8], F32, 0).data(64);
    refuses!(named(&"n".repeat(1025)), GgufError::NameTooLong { length: 1025, .. });
    assert!(open(named(&"n".repeat(1024))).is_ok());
    let file = Raw::header(1, 0).u64(1).bytes(b"\xFF").u32(1).u64(8).u32(0).u64(0).data(64);
    refuses!(file, GgufError::NameNotUtf8 { at: 24 });
    let file = Raw::header(1, 0).u64(1 << 50).data(64);
    refuses!(file, GgufError::StringPastEnd { at: 24, .. });
}

#[test]
fn names_are_escaped_in_messages() {
    let error = open(Raw::header(1, 0).tensor("\x1b[2J", &[], F32, 0).data(64)).unwrap_err();
    assert!(!error.to_string().contains('\x1b'), "{error}");
}

#[test]
fn a_tensor_too_large_for_this_machine() {
    // 8 GiB in a file that claims to have them: it can be opened, but not read at once on 32 bits.
    let raw = Raw::header(1, 0).tensor("t", &[1 << 31], F32, 0).data(0);
    let gguf = Counting::new(raw, (8 << 30) + 4096).open().unwrap();
    let tensor = gguf.tensor("t").unwrap();
    assert_eq!(tensor.nbytes(), 8 << 30);
    assert_eq!(pollster::block_on(gguf.read(tensor, (8 << 30) - 4..8 << 30)).unwrap().len(), 4);
    if cfg!(target_pointer_width = "32") {
        let error = pollster::block_on(gguf.read(tensor, 0..8 << 30)).unwrap_err();
        assert!(matches!(error, GgufError::TooLargeForMemory { .. }), "{error:?}");
        let error = pollster::block_on(gguf.rows_f32(tensor, 0..1)).unwrap_err();
        assert!(matches!(error, GgufError::TooLargeForMemory { .. }), "{error:?}");
    }
}

#[test]
fn decoded_size_too_large_for_32_bits() {
    // 2^32 ternary digits take 864 MiB, as floats 16 GiB.
    let raw = Raw::header(1, 0).tensor("t", &[1 << 32], 34, 0).data(0);
    let gguf = Counting::new(raw, 1 << 30).open().unwrap();
    let tensor = gguf.tensor("t").unwrap();
    assert_eq!(tensor.nbytes(), (1 << 32) / 256 * 54);
    if cfg!(target_pointer_width = "32") {
        let error = pollster::block_on(gguf.rows_f32(tensor, 0..1)).unwrap_err();
        assert!(
            matches!(error, GgufError::TooLargeForMemory { bytes, .. } if bytes == 1 << 34),
            "{error:?}"
        );
    }
}
