//! Safetensors files a tensor at a time: neither who reads nor who writes one holds it whole.

use std::{collections::HashMap, ops::Range, rc::Rc};

use rullama_source::{ByteSource, Bytes};
use safetensors::{
    Dtype,
    tensor::{Metadata, TensorInfo},
};

use crate::error::AdapterError;

/// Bytes of the first number, which is the header's length.
const LENGTH: usize = 8;
/// No header is longer.
const LONGEST: u64 = 100_000_000;

/// An open file: its header was read and checked.
pub struct Container {
    source: Rc<dyn ByteSource>,
    header: Metadata,
    /// Where the tensors begin.
    start: u64,
}

impl Container {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// If it cannot be read, or is broken.
    pub async fn open(source: Rc<dyn ByteSource>) -> Result<Self, AdapterError> {
        let wrong = |why: String| AdapterError::NotAnAdapter { name: source.name().into(), why };
        let all = source.len();
        if all < LENGTH as u64 {
            return Err(wrong("it is too short".into()));
        }
        let number = source.read(0..LENGTH as u64).await?;
        let number = number.iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        let start = LENGTH as u64 + number.min(LONGEST);
        if number > LONGEST || start > all {
            return Err(wrong("its header is longer than the file".into()));
        }
        let header = source.read(LENGTH as u64..start).await?;
        let header: Metadata =
            serde_json::from_slice(&header).map_err(|error| wrong(error.to_string()))?;
        if start + header.data_len() as u64 != all {
            return Err(wrong("its size does not match its tensors".into()));
        }
        Ok(Self { source, header, start })
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// A string of the file's own metadata.
    pub fn said(&self, key: &str) -> Option<&str> {
        self.header.metadata().as_ref()?.get(key).map(String::as_str)
    }

    /// All tensors, sorted by name.
    pub fn tensors(&self) -> Vec<(String, &TensorInfo)> {
        let mut all: Vec<_> = self.header.tensors().into_iter().collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// The bytes of one of them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn bytes(&self, tensor: &TensorInfo) -> Result<Bytes, AdapterError> {
        let (first, end) = tensor.data_offsets;
        let range: Range<u64> = self.start + first as u64..self.start + end as u64;
        Ok(self.source.read(range).await?)
    }
}

/// The beginning of a file of f32 tensors, whose bytes follow it in this order.
///
/// # Errors
/// If there is no space for so many numbers.
pub fn beginning(
    said: HashMap<String, String>,
    tensors: impl IntoIterator<Item = (String, Vec<usize>)>,
) -> Result<Vec<u8>, AdapterError> {
    let bad = |why: String| AdapterError::Write { why };
    let mut at = 0usize;
    let mut infos = Vec::new();
    for (name, shape) in tensors {
        let numbers =
            shape.iter().try_fold(size_of::<f32>(), |bytes, size| bytes.checked_mul(*size));
        let end = numbers.and_then(|bytes| at.checked_add(bytes));
        let end = end.ok_or_else(|| bad(format!("{name:?} is too large")))?;
        infos.push((name, TensorInfo { dtype: Dtype::F32, shape, data_offsets: (at, end) }));
        at = end;
    }
    let header = Metadata::new(Some(said), infos).map_err(|error| bad(error.to_string()))?;
    let mut header = serde_json::to_vec(&header).map_err(|error| bad(error.to_string()))?;
    // Tensors begin where numbers can be read in place.
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    Ok(bytes)
}

/// Numbers as files hold them.
pub fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
