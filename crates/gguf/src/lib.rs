//! GGUF files: metadata, tensors, and quantisation formats.
//!
//! [`Gguf::open`] reads only the header, also of a large file over a network.
//! Files are untrusted: every number is checked against the file before it is used.

#![warn(clippy::cast_possible_truncation)]

mod array;
mod dtype;
mod entries;
mod error;
mod header;
#[cfg(feature = "json")]
mod json;
mod layout;
mod metadata;
mod named;
pub mod quant;
mod reader;
mod scattered;
mod split;
mod tensor;
mod value;
mod write;

use std::{fmt, ops::Range, rc::Rc};

use bytes::Bytes;
use rullama_source::{ByteSource, Local, SourceError};

use crate::{named::NamedList, reader::Reader};

pub use array::{Array, StringArray};
pub use dtype::DType;
pub use error::{GgufError, Optional};
pub use metadata::Entry;
pub use split::Part;
pub use tensor::TensorInfo;
pub use value::{Kind, Value, ValueType};
pub use write::Writer;

/// A read that was requested from a source.
struct PendingRead<'a> {
    at: u64,
    length: u64,
    reading: Local<'a, Result<Bytes, SourceError>>,
}

impl PendingRead<'_> {
    async fn bytes(self) -> Result<Bytes, GgufError> {
        let bytes = self.reading.await?;
        let (at, requested, got) = (self.at, self.length, bytes.len() as u64);
        if got != requested {
            return Err(GgufError::ShortRead { at, requested, got });
        }
        Ok(bytes)
    }
}

/// An open file, or the files of a split model: the header in memory, tensors read on demand.
pub struct Gguf {
    /// The file, or the parts of a split model in order, indexed by [`TensorInfo::part`].
    sources: Vec<Rc<dyn ByteSource>>,
    version: u32,
    alignment: u32,
    metadata: NamedList<Entry>,
    tensors: NamedList<TensorInfo>,
}

impl Gguf {
    /// Reads and checks the header.
    pub async fn open(source: Rc<dyn ByteSource>) -> Result<Self, GgufError> {
        let mut reader = Reader::new(&*source);
        let prologue = header::prologue(&mut reader).await?;
        let entries = entries::read(&mut reader, prologue.entries).await?;
        let metadata = NamedList::new(entries).map_err(|key| GgufError::DuplicateKey { key })?;
        let alignment = layout::alignment(&metadata)?;
        let tensors = header::tensors(&mut reader, prologue.tensors).await?;
        let mut tensors =
            NamedList::new(tensors).map_err(|tensor| GgufError::DuplicateTensor { tensor })?;
        layout::resolve_offsets(tensors.items_mut(), reader.at(), alignment, reader.len())?;
        Ok(Self { sources: vec![source], version: prologue.version, alignment, metadata, tensors })
    }

    /// The file's name in messages; of a split model, the first file's.
    pub fn name(&self) -> &str {
        self.sources.first().map_or("", |source| source.name())
    }

    /// The version of the format, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.sources.len()
    }

    /// The names of the files in messages, in order.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.name())
    }

    /// Every tensor starts at a multiple of this many bytes from the start of the data.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// All tensors in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        self.tensors.items()
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// Reads bytes of a tensor, counted from its start. The read starts now, not when the future is polled.
    pub fn read(
        &self,
        tensor: &TensorInfo,
        range: Range<u64>,
    ) -> impl Future<Output = Result<Bytes, GgufError>> + use<'_> {
        let read = tensor.check_range("bytes", &range, tensor.nbytes()).and_then(|()| {
            // No overflow: the tensor is inside the file.
            self.request(tensor, tensor.offset() + range.start..tensor.offset() + range.end)
        });
        async move { read?.bytes().await }
    }

    /// Starts to read bytes of the file that contains a tensor.
    fn request(
        &self,
        tensor: &TensorInfo,
        range: Range<u64>,
    ) -> Result<PendingRead<'_>, GgufError> {
        let (at, length) = (range.start, range.end - range.start);
        tensor.addressable(length)?;
        let source = self.sources.get(tensor.part()).ok_or_else(|| tensor.foreign())?;
        Ok(PendingRead { at, length, reading: source.read(range) })
    }

    /// Reads rows of a tensor in their stored format; the read starts now.
    pub fn read_rows(
        &self,
        tensor: &TensorInfo,
        rows: Range<u64>,
    ) -> impl Future<Output = Result<Bytes, GgufError>> + use<'_> {
        let reading = tensor.row_range(&rows).map(|range| self.read(tensor, range));
        async move { reading?.await }
    }

    /// Reads rows of a tensor as f32; the read starts now.
    pub fn rows_f32<'a>(
        &'a self,
        tensor: &'a TensorInfo,
        rows: Range<u64>,
    ) -> impl Future<Output = Result<Vec<f32>, GgufError>> + use<'a> {
        let read = tensor.row_range(&rows).and_then(|range| {
            let elements = tensor.decodable(rows.end - rows.start)?;
            Ok((elements, self.read(tensor, range)))
        });
        async move {
            let (elements, reading) = read?;
            tensor.decode(elements, &reading.await?)
        }
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("name", &self.name())
            .field("version", &self.version)
            .field("alignment", &self.alignment)
            .field("metadata", &self.metadata().len())
            .field("tensors", &self.tensors().len())
            .finish()
    }
}
