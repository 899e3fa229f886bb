//! Reading and writing safetensors files one tensor at a time, so that a file is never in memory whole.

use std::{collections::HashMap, ops::Range, rc::Rc};

use rullama_source::{ByteSource, Bytes};
use safetensors::{
    Dtype,
    tensor::{Metadata, TensorInfo},
};

use crate::error::AdapterError;

/// Bytes of the header length, which a file begins with.
const LENGTH: usize = 8;
/// Longest header that is read, in bytes; the limit of the `safetensors` crate.
const LONGEST: u64 = 100_000_000;

/// An open safetensors file with a validated header.
pub struct Container {
    source: Rc<dyn ByteSource>,
    header: Metadata,
    /// File offset of the first tensor.
    start: u64,
}

impl Container {
    /// Reads the file's header.
    ///
    /// # Errors
    /// If the header cannot be read or is invalid.
    pub async fn open(source: Rc<dyn ByteSource>) -> Result<Self, AdapterError> {
        let wrong = |why: String| AdapterError::NotAnAdapter { name: source.name().into(), why };
        let all = source.len();
        if all < LENGTH as u64 {
            return Err(wrong("the file is too short".into()));
        }
        let length = source.read(0..LENGTH as u64).await?;
        let length = length.iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        let start = LENGTH as u64 + length.min(LONGEST);
        if length > LONGEST || start > all {
            return Err(wrong("the header is longer than the file".into()));
        }
        let header = source.read(LENGTH as u64..start).await?;
        let header: Metadata =
            serde_json::from_slice(&header).map_err(|error| wrong(error.to_string()))?;
        if start + header.data_len() as u64 != all {
            return Err(wrong("the file size does not match its tensors".into()));
        }
        Ok(Self { source, header, start })
    }

    /// The file's name, for messages.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The value of a key of the file's `__metadata__`.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.header.metadata().as_ref()?.get(key).map(String::as_str)
    }

    /// All tensors, sorted by name.
    pub fn tensors(&self) -> Vec<(String, &TensorInfo)> {
        let mut all: Vec<_> = self.header.tensors().into_iter().collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// The bytes of a tensor.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn bytes(&self, tensor: &TensorInfo) -> Result<Bytes, AdapterError> {
        let (first, end) = tensor.data_offsets;
        let range: Range<u64> = self.start + first as u64..self.start + end as u64;
        Ok(self.source.read(range).await?)
    }
}

/// The header of a file of f32 tensors; their bytes follow in the same order.
///
/// # Errors
/// If the tensors are too large to address.
pub fn header(
    metadata: HashMap<String, String>,
    tensors: impl IntoIterator<Item = (String, Vec<usize>)>,
) -> Result<Vec<u8>, AdapterError> {
    let bad = |why: String| AdapterError::Write { why };
    let mut at = 0usize;
    let mut infos = Vec::new();
    for (name, shape) in tensors {
        let bytes = shape.iter().try_fold(size_of::<f32>(), |bytes, size| bytes.checked_mul(*size));
        let end = bytes.and_then(|bytes| at.checked_add(bytes));
        let end = end.ok_or_else(|| bad(format!("{name:?} is too large")))?;
        infos.push((name, TensorInfo { dtype: Dtype::F32, shape, data_offsets: (at, end) }));
        at = end;
    }
    let header = Metadata::new(Some(metadata), infos).map_err(|error| bad(error.to_string()))?;
    let mut header = serde_json::to_vec(&header).map_err(|error| bad(error.to_string()))?;
    // Pads with spaces so that the tensor data is aligned.
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    Ok(bytes)
}

/// f32 values as little-endian bytes.
pub fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
