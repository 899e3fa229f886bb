//! Sources and files for tests.

use std::{cell::Cell, ops::Range, rc::Rc};

use rullama_gguf::{Gguf, GgufError};
use rullama_source::{ByteSource, Bytes, Local, MemorySource, SourceError};

/// Opens a file in memory.
pub(crate) fn open(file: impl Into<Bytes>) -> Result<Gguf, GgufError> {
    pollster::block_on(Gguf::open(Rc::new(MemorySource::new("test.gguf", file))))
}

/// Opens `file` and expects a certain error.
macro_rules! refuses {
    ($file:expr, $pattern:pat $(if $guard:expr)?) => {{
        let error = crate::support::open($file).expect_err("a hostile file was accepted");
        assert!(matches!(&error, $pattern $(if $guard)?), "{error:?}");
        assert!(!error.to_string().is_empty());
    }};
}
pub(crate) use refuses;

/// The bytes of a header, written field by field and unchecked, unlike `Writer`.
#[derive(Clone, Default)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// Magic, version 3 and the two counts.
    pub(crate) fn header(tensors: u64, entries: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(3).u64(tensors).u64(entries)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn string(self, string: &str) -> Self {
        self.u64(string.len() as u64).bytes(string.as_bytes())
    }

    pub(crate) fn tensor(self, name: &str, dims: &[u64], dtype: u32, offset: u64) -> Self {
        let count = u32::try_from(dims.len()).unwrap();
        let raw = self.string(name).u32(count);
        dims.iter().fold(raw, |raw, &dim| raw.u64(dim)).u32(dtype).u64(offset)
    }

    /// Zeros up to the alignment of 32, then `count` more.
    pub(crate) fn data(mut self, count: usize) -> Vec<u8> {
        let start = self.0.len().next_multiple_of(32);
        self.0.resize(start + count, 0);
        self.0
    }
}

/// A source that counts what is read. It may claim to be longer than its bytes; the rest is zeros.
pub(crate) struct Counting {
    bytes: Vec<u8>,
    len: u64,
    pub(crate) read: Cell<u64>,
    pub(crate) reads: Cell<u64>,
}

impl Counting {
    pub(crate) fn new(bytes: impl Into<Vec<u8>>, len: u64) -> Rc<Self> {
        Rc::new(Self { bytes: bytes.into(), len, read: Cell::new(0), reads: Cell::new(0) })
    }

    pub(crate) fn open(self: &Rc<Self>) -> Result<Gguf, GgufError> {
        pollster::block_on(Gguf::open(self.clone()))
    }
}

impl ByteSource for Counting {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>> {
        assert!(range.start <= range.end && range.end <= self.len, "read outside the source");
        let count = range.end - range.start;
        self.read.set(self.read.get() + count);
        self.reads.set(self.reads.get() + 1);
        let end = range.end.min(self.bytes.len() as u64) as usize;
        let start = range.start.min(end as u64) as usize;
        let mut bytes = self.bytes[start..end].to_vec();
        bytes.resize(usize::try_from(count).unwrap(), 0);
        Box::pin(std::future::ready(Ok(bytes.into())))
    }

    fn name(&self) -> &str {
        "counting.gguf"
    }
}

/// Pseudo-random values between -1 and 1, denser near zero, like weights.
pub(crate) fn weights(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    (0..count).map(|_| uniform() + uniform() + uniform() - 1.5).map(|x| x / 1.5).collect()
}
