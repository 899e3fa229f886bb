//! What is in a GGUF file: metadata, tensors, and the block formats their numbers are stored in.
//!
//! [`Gguf::open`] reads the header and nothing else, so a large file over a network costs only that.
//! Files lie: every number is checked against the file before it is used.

#![warn(clippy::cast_possible_truncation)]

mod array;
mod dtype;
mod entries;
mod error;
mod header;
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

/// Bytes of a file that were requested from its source.
struct Asked<'a> {
    at: u64,
    length: u64,
    reading: Local<'a, Result<Bytes, SourceError>>,
}

impl Asked<'_> {
    async fn bytes(self) -> Result<Bytes, GgufError> {
        let bytes = self.reading.await?;
        let (at, asked, got) = (self.at, self.length, bytes.len() as u64);
        if got != asked {
            return Err(GgufError::ShortRead { at, asked, got });
        }
        Ok(bytes)
    }
}

/// An open file, or several as one: the header in memory, tensors to be read when they are wanted.
pub struct Gguf {
    /// The file, or the parts of a split model in order. A tensor knows its part.
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
        layout::place(tensors.items_mut(), reader.at(), alignment, reader.len())?;
        Ok(Self { sources: vec![source], version: prologue.version, alignment, metadata, tensors })
    }

    /// What the file is called in messages; the first one of a split model.
    pub fn name(&self) -> &str {
        self.sources.first().map_or("", |source| source.name())
    }

    /// The version of the format, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// How many files it lies in.
    pub fn files(&self) -> usize {
        self.sources.len()
    }

    /// What these files are called in messages, in order.
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

    /// Some bytes of a tensor, counted from its start. The source is asked now, not when somebody waits.
    pub fn read(
        &self,
        tensor: &TensorInfo,
        range: Range<u64>,
    ) -> impl Future<Output = Result<Bytes, GgufError>> + use<'_> {
        let asked = tensor.check_range("bytes", &range, tensor.nbytes()).and_then(|()| {
            // No overflow: the tensor is inside the file.
            self.ask(tensor, tensor.offset() + range.start..tensor.offset() + range.end)
        });
        async move { asked?.bytes().await }
    }

    /// Requests bytes of the file that a tensor lies in.
    fn ask(&self, tensor: &TensorInfo, range: Range<u64>) -> Result<Asked<'_>, GgufError> {
        let (at, length) = (range.start, range.end - range.start);
        tensor.addressable(length)?;
        let source = self.sources.get(tensor.part()).ok_or_else(|| tensor.elsewhere())?;
        Ok(Asked { at, length, reading: source.read(range) })
    }

    /// Some rows of a tensor as they are stored; the source is asked now.
    pub fn read_rows(
        &self,
        tensor: &TensorInfo,
        rows: Range<u64>,
    ) -> impl Future<Output = Result<Bytes, GgufError>> + use<'_> {
        let reading = tensor.row_range(&rows).map(|range| self.read(tensor, range));
        async move { reading?.await }
    }

    /// Some rows of a tensor as numbers; the source is asked now.
    pub fn rows_f32<'a>(
        &'a self,
        tensor: &'a TensorInfo,
        rows: Range<u64>,
    ) -> impl Future<Output = Result<Vec<f32>, GgufError>> + use<'a> {
        let asked = tensor.row_range(&rows).and_then(|range| {
            let elements = tensor.decodable(rows.end - rows.start)?;
            Ok((elements, self.read(tensor, range)))
        });
        async move {
            let (elements, reading) = asked?;
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
