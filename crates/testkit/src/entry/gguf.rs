//! Bytes as a GGUF file.

use std::rc::Rc;

use bytes::Bytes;
use pollster::block_on;
use rullama_gguf::{Gguf, TensorInfo, Value};
use rullama_source::MemorySource;

/// Opens the bytes as a GGUF file and reads everything in it: accepted tensors are readable and inside the file.
pub fn gguf(data: &[u8]) {
    let source = MemorySource::new("input", Bytes::copy_from_slice(data));
    match block_on(Gguf::open(Rc::new(source))) {
        Ok(gguf) => {
            metadata(&gguf);
            for tensor in gguf.tensors() {
                extent(&gguf, tensor, data);
                rows(&gguf, tensor);
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error without a message: {error:?}")
        }
    }
}

fn metadata(gguf: &Gguf) {
    assert!(matches!(gguf.version(), 2 | 3));
    assert!(gguf.alignment().is_power_of_two());
    for entry in gguf.metadata() {
        let key = entry.key.as_str();
        let found = gguf.get(key).expect("a listed key is found");
        assert_eq!(found.kind(), entry.value.kind(), "{key:?} is found twice");
        assert_eq!(gguf.str(key).is_ok(), matches!(found, Value::String(_)));
        assert_eq!(gguf.bool(key).is_ok(), matches!(found, Value::Bool(_)));
        if gguf.u32(key).is_ok() {
            assert_eq!(gguf.u64(key).ok(), gguf.u32(key).ok().map(u64::from));
        }
        let _ = (gguf.f32(key), gguf.floats(key), gguf.bools(key));
        if let (Ok(numbers), Value::Array(array)) = (gguf.integers(key), found) {
            assert_eq!(numbers.len(), array.len());
        }
        if let Ok(strings) = gguf.strings(key) {
            assert_eq!(strings.iter().count(), strings.len());
            assert_eq!(
                strings.iter().last(),
                strings.len().checked_sub(1).and_then(|i| strings.get(i))
            );
        }
    }
}

/// Shape and size agree, and the bytes are those of the file.
fn extent(gguf: &Gguf, tensor: &TensorInfo, file: &[u8]) {
    assert_eq!(gguf.tensor(tensor.name()), Some(tensor));
    assert!((1..=4).contains(&tensor.dims().len()) && !tensor.dims().contains(&0));
    assert_eq!(tensor.elements(), tensor.rows() * tensor.row_len());
    assert_eq!(tensor.nbytes(), tensor.rows() * tensor.row_bytes());
    assert!(tensor.offset().is_multiple_of(gguf.alignment().into()));
    let start = usize::try_from(tensor.offset()).expect("inside the file");
    let length = usize::try_from(tensor.nbytes()).expect("inside the file");
    let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).expect("the tensor is whole");
    assert_eq!(bytes, file[start..start + length]);
    assert!(block_on(gguf.read(tensor, 0..tensor.nbytes() + 1)).is_err());
    assert!(block_on(gguf.read_rows(tensor, 0..u64::MAX)).is_err());
}

/// The first and the last row decode if their format is supported, and are finite exactly if `check_finite` accepts them.
fn rows(gguf: &Gguf, tensor: &TensorInfo) {
    let last = tensor.rows() - 1;
    for row in [0, last] {
        let bytes = block_on(gguf.read_rows(tensor, row..row + 1)).expect("the row is there");
        let finite = tensor.check_finite(row, &bytes);
        let Ok(numbers) = block_on(gguf.rows_f32(tensor, row..row + 1)) else {
            assert!(!tensor.dtype().decodable() && finite.is_err());
            continue;
        };
        assert_eq!(numbers.len() as u64, tensor.row_len());
        assert_eq!(finite.is_ok(), numbers.iter().all(|x| x.is_finite()), "{finite:?}");
    }
}
