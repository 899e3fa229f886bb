//! Written files can be read back unchanged.

use proptest::prelude::*;
use rullama_gguf::{Array, DType, GgufError, StringArray, Value, Writer};

use crate::support::open;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        any::<u32>().prop_map(|bits| Value::F32(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Value::F64(f64::from_bits(bits))),
        any::<bool>().prop_map(Value::Bool),
        any::<String>().prop_map(Value::String),
    ]
}

fn many<T: std::fmt::Debug>(element: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(element, 0..20)
}

fn array() -> impl Strategy<Value = Value> {
    prop_oneof![
        many(any::<u8>()).prop_map(Array::U8),
        many(any::<i8>()).prop_map(Array::I8),
        many(any::<u16>()).prop_map(Array::U16),
        many(any::<i16>()).prop_map(Array::I16),
        many(any::<u32>()).prop_map(Array::U32),
        many(any::<i32>()).prop_map(Array::I32),
        many(any::<u64>()).prop_map(Array::U64),
        many(any::<i64>()).prop_map(Array::I64),
        many(any::<f32>()).prop_map(Array::F32),
        many(any::<f64>()).prop_map(Array::F64),
        many(any::<bool>()).prop_map(Array::Bool),
        many(any::<String>()).prop_map(|v| Array::String(v.iter().collect::<StringArray>())),
    ]
    .prop_map(Value::Array)
}

/// Type, blocks per row, outer dimensions, and a byte to fill the tensor with.
fn tensor() -> impl Strategy<Value = (DType, u64, Vec<u64>, u8)> {
    let dtype = prop::sample::select(DType::ALL.to_vec());
    (dtype, 1..4u64, prop::collection::vec(1..4u64, 0..4), any::<u8>())
}

type Tensors = std::collections::BTreeMap<String, (DType, u64, Vec<u64>, u8)>;
type Entries = std::collections::BTreeMap<String, Value>;

fn contents() -> impl Strategy<Value = (Entries, Tensors)> {
    let entries =
        prop::collection::btree_map("[a-z.]{0,12}", prop_oneof![scalar(), array()], 0..12);
    (entries, prop::collection::btree_map("[a-z.0-9]{0,12}", tensor(), 0..8))
}

fn dims(dtype: DType, blocks: u64, outer: &[u64]) -> Vec<u64> {
    [&[blocks * dtype.block_elements() as u64], outer].concat()
}

fn writer(entries: &Entries, tensors: &Tensors, version: u32, alignment: u32) -> Writer {
    let mut writer = Writer::new().version(version).alignment(alignment);
    for (key, value) in entries {
        writer = writer.kv(key, value.clone());
    }
    for (name, (dtype, blocks, outer, fill)) in tensors {
        let blocks_in_all = blocks * outer.iter().product::<u64>();
        let bytes = vec![*fill; dtype.block_bytes() * blocks_in_all as usize];
        writer = writer.tensor(name, &dims(*dtype, *blocks, outer), *dtype, bytes);
    }
    writer
}

proptest! {
    #[test]
    fn written_files_are_read_back(
        (entries, tensors) in contents(),
        version in 2..=3u32,
        alignment in (0..10u32).prop_map(|log| 1 << log),
    ) {
        let file = writer(&entries, &tensors, version, alignment).finish().unwrap();
        let gguf = open(file.clone()).unwrap();
        prop_assert_eq!((gguf.version(), gguf.alignment()), (version, alignment));
        prop_assert_eq!(gguf.metadata().len(), entries.len() + 1);
        prop_assert_eq!(gguf.tensors().len(), tensors.len());
        for (name, (dtype, blocks, outer, fill)) in &tensors {
            let tensor = gguf.tensor(name).unwrap();
            prop_assert_eq!(tensor.dtype(), *dtype);
            prop_assert_eq!(tensor.dims(), dims(*dtype, *blocks, outer));
            prop_assert_eq!(tensor.rows() * tensor.row_bytes(), tensor.nbytes());
            let bytes = pollster::block_on(gguf.read(tensor, 0..tensor.nbytes())).unwrap();
            prop_assert!(bytes.iter().all(|b| b == fill));
        }
        // A file written again from what was read is identical.
        let read: Entries = entries.keys().map(|k| (k.clone(), gguf.get(k).unwrap().clone())).collect();
        prop_assert_eq!(writer(&read, &tensors, version, alignment).finish().unwrap(), file);
    }
}

/// Tries to write and expects a certain error.
macro_rules! refuses_to_write {
    ($writer:expr, $pattern:pat) => {{
        let error = $writer.finish().expect_err("a broken file was written");
        assert!(matches!(&error, $pattern), "{error:?}");
    }};
}

#[test]
fn invalid_contents_are_not_written() {
    let new = Writer::new;
    let f32 = |name, dims: &[u64]| new().tensor(name, dims, DType::F32, vec![0; 64]);
    refuses_to_write!(new().version(1), GgufError::UnsupportedVersion { found: 1 });
    refuses_to_write!(new().alignment(0), GgufError::AlignmentZero);
    refuses_to_write!(new().alignment(48), GgufError::AlignmentNotPowerOfTwo { .. });
    refuses_to_write!(new().kv("general.alignment", 32u64), GgufError::AlignmentType { .. });
    refuses_to_write!(new().kv("a", 1u8).kv("a", 2u8), GgufError::DuplicateKey { .. });
    refuses_to_write!(new().kv("k".repeat(65_536), 1u8), GgufError::KeyTooLong { .. });
    refuses_to_write!(f32("t".repeat(1_025), &[16]), GgufError::NameTooLong { .. });
    refuses_to_write!(
        f32("t".into(), &[15]),
        GgufError::TensorLength { expected: 60, found: 64, .. }
    );
    refuses_to_write!(f32("t".into(), &[]), GgufError::NoDimensions { .. });
    refuses_to_write!(f32("t".into(), &[1; 5]), GgufError::TooManyDimensions { count: 5, .. });
    let twice = f32("t".into(), &[16]).tensor("t", &[16], DType::F32, vec![0; 64]);
    refuses_to_write!(twice, GgufError::DuplicateTensor { .. });
}

#[test]
fn an_alignment_given_as_metadata_is_used() {
    let file =
        Writer::new().kv("general.alignment", 256u32).tensor("t", &[1], DType::F32, vec![1; 4]);
    let gguf = open(file.finish().unwrap()).unwrap();
    assert_eq!(gguf.tensor("t").unwrap().offset() % 256, 0);
}

#[test]
fn a_broken_pipe_is_an_error() {
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert!(matches!(Writer::new().write_to(Broken), Err(GgufError::Write(_))));
}
