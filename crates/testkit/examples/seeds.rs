//! Writes the seeds of `fuzz/corpus/gguf`: valid files with every format, and small files with every known defect.
//!
//! `cargo run -p rullama-testkit --example seeds`

use std::path::Path;

use rullama_gguf::{DType, StringArray, Writer};

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/gguf");
    std::fs::create_dir_all(&folder)?;
    for (name, file) in valid().into_iter().chain(malformed()) {
        std::fs::write(folder.join(name), file)?;
    }
    Ok(())
}

type Seeds = Vec<(&'static str, Vec<u8>)>;

fn valid() -> Seeds {
    let strings: StringArray = ["one", "two", "drei", ""].into_iter().collect();
    let metadata = Writer::new()
        .kv("general.architecture", "gemma4")
        .kv("u8", 1u8)
        .kv("i8", -1i8)
        .kv("u16", 2u16)
        .kv("i16", -2i16)
        .kv("i32", -3i32)
        .kv("u64", u64::MAX)
        .kv("i64", i64::MIN)
        .kv("f32", f32::NAN)
        .kv("f64", 0.5f64)
        .kv("bool", true)
        .kv("strings", strings)
        .kv("bools", vec![true, false])
        .kv("words", vec![1u16, 2])
        .kv("floats", vec![0.5f32, f32::INFINITY]);
    let tensors = metadata
        .clone()
        .alignment(64)
        .tensor("matrix", &[32, 2], DType::Q8_0, vec![7; 68])
        .tensor("cube", &[2, 2, 2, 2], DType::F16, vec![0x3C; 32]);
    let mut formats = Writer::new();
    for dtype in DType::ALL {
        let (elements, bytes) = (dtype.block_elements() as u64, dtype.block_bytes());
        formats = formats.tensor(dtype.name(), &[elements, 1], dtype, vec![0x35; bytes]);
    }
    let finish = |writer: Writer| writer.finish().expect("a valid file");
    vec![
        ("empty", finish(Writer::new().version(2))),
        ("metadata", finish(metadata)),
        ("tensors", finish(tensors)),
        ("formats", finish(formats)),
    ]
}

/// Writes header fields unchecked, unlike `Writer`.
struct Raw(Vec<u8>);

impl Raw {
    fn header(tensors: u64, entries: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(3).u64(tensors).u64(entries)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn string(self, text: &str) -> Self {
        self.u64(text.len() as u64).bytes(text.as_bytes())
    }

    /// An array in the metadata, without its elements.
    fn array(element: u32, count: u64) -> Self {
        Self::header(0, 1).string("key").u32(9).u32(element).u64(count)
    }

    fn alignment(value: u32) -> Self {
        Self::header(0, 1).string("general.alignment").u32(4).u32(value)
    }

    fn tensor(self, name: &str, dims: &[u64], dtype: u32, offset: u64) -> Self {
        let head = self.string(name).u32(dims.len() as u32);
        dims.iter().fold(head, |raw, dim| raw.u64(*dim)).u32(dtype).u64(offset)
    }

    /// One tensor and 256 bytes of data.
    fn one(dims: &[u64], dtype: u32, offset: u64) -> Self {
        Self::header(1, 0).tensor("t", dims, dtype, offset).bytes(&[0; 256])
    }
}

fn malformed() -> Seeds {
    let two = |first: &str, second: &str| {
        Raw::header(2, 0).tensor(first, &[16], 0, 0).tensor(second, &[16], 0, 32).bytes(&[0; 256])
    };
    let files = [
        ("version", Raw(b"GGUF".to_vec()).u32(1).u64(0).u64(0)),
        ("big-endian", Raw(b"GGUF\0\0\0\x03".to_vec()).u64(0).u64(0)),
        ("many-entries", Raw::header(0, u64::MAX)),
        ("many-tensors", Raw::header(1 << 40, 0)),
        ("long-key", Raw::header(0, 1).u64(u64::MAX).bytes(b"key")),
        ("long-string", Raw::header(0, 1).string("key").u32(8).u64(1 << 63).bytes(b"x")),
        ("long-array", Raw::array(8, 1 << 40).string("one")),
        ("overflowing-array", Raw::array(12, 1 << 61).bytes(&[0; 16])),
        ("nested-array", Raw::array(9, 1).u32(0).u64(1).bytes(&[1])),
        ("split-character", Raw::array(8, 2).u64(1).bytes(b"\xC3").u64(1).bytes(b"\xA9")),
        ("value-type", Raw::header(0, 1).string("key").u32(13).u64(0)),
        ("bool", Raw::array(7, 3).bytes(&[0, 1, 2])),
        ("alignment-0", Raw::alignment(0)),
        ("alignment-3", Raw::alignment(3)),
        ("alignment-huge", Raw::alignment(1 << 31)),
        ("no-dimensions", Raw::one(&[], 0, 0)),
        ("five-dimensions", Raw::one(&[1; 5], 0, 0)),
        ("zero-dimension", Raw::one(&[4, 0], 0, 0)),
        ("overflowing-shape", Raw::one(&[1 << 32, 1 << 32], 0, 0)),
        ("overflowing-bytes", Raw::one(&[1 << 62], 27, 0)),
        ("ragged-row", Raw::one(&[33], 2, 0)),
        ("unknown-type", Raw::one(&[4], 99, 0)),
        ("retired-type", Raw::one(&[4], 4, 0)),
        ("unaligned", Raw::one(&[4], 0, 5)),
        ("past-the-end", Raw::one(&[1 << 20], 0, 0)),
        ("wrapping-offset", Raw::one(&[8], 0, u64::MAX - 31)),
        ("overlap", two("a", "b")),
        ("same-name", two("a", "a")),
    ];
    files.into_iter().map(|(name, Raw(file))| (name, file)).collect()
}
