//! The start of the file and its tensor table, checked while they are read.

use crate::{
    dtype::{DType, retired},
    error::GgufError,
    reader::Reader,
    tensor::{MAX_DIMS, TensorInfo},
};

/// Longest tensor name. ggml allows 64 bytes; some tools write more.
pub(crate) const NAME_LIMIT: u64 = 1_024;

/// Maximum number of entries, and of tensors. Models with one tensor per expert have some 50,000.
const COUNT_LIMIT: u64 = 1 << 17;
/// An empty key, a type, a value of one byte.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// An empty name, one dimension and its count, a type, an offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 8 + 4 + 8;

/// The first 24 bytes.
pub(crate) struct Prologue {
    pub(crate) version: u32,
    pub(crate) tensors: u64,
    pub(crate) entries: u64,
}

pub(crate) async fn prologue(reader: &mut Reader<'_>) -> Result<Prologue, GgufError> {
    match &reader.bytes().await? {
        b"GGUF" => {}
        b"FUGG" => return Err(GgufError::BigEndian),
        found => return Err(GgufError::WrongMagic { found: *found }),
    }
    let version = match reader.u32().await? {
        version @ (2 | 3) => version,
        found if found != 0 && found & 0xFFFF == 0 => return Err(GgufError::BigEndian),
        found => return Err(GgufError::UnsupportedVersion { found }),
    };
    let tensors = reader.u64().await?;
    let entries = reader.u64().await?;
    let limit = COUNT_LIMIT.min(reader.left() / MIN_ENTRY_BYTES);
    if entries > limit {
        return Err(GgufError::KeyCount { count: entries, limit });
    }
    let left = reader.left() - entries * MIN_ENTRY_BYTES;
    let limit = COUNT_LIMIT.min(left / MIN_TENSOR_BYTES);
    if tensors > limit {
        return Err(GgufError::TensorCount { count: tensors, limit });
    }
    Ok(Prologue { version, tensors, entries })
}

pub(crate) async fn tensors(
    reader: &mut Reader<'_>,
    count: u64,
) -> Result<Vec<TensorInfo>, GgufError> {
    let mut tensors = Vec::new();
    for _ in 0..count {
        tensors.push(tensor(reader).await?);
    }
    Ok(tensors)
}

async fn tensor(reader: &mut Reader<'_>) -> Result<TensorInfo, GgufError> {
    let at = reader.at();
    let length = reader.u64().await?;
    if length > NAME_LIMIT && length <= reader.left() {
        return Err(GgufError::NameTooLong { at, length, limit: NAME_LIMIT });
    }
    let name = String::from_utf8(reader.string(at, length).await?)
        .map_err(|_| GgufError::NameNotUtf8 { at })?;
    let count = reader.u32().await?;
    if count as usize > MAX_DIMS {
        return Err(GgufError::TooManyDimensions { tensor: name, count: count.into() });
    }
    let mut dims = Vec::new();
    for _ in 0..count {
        dims.push(reader.u64().await?);
    }
    let id = reader.u32().await?;
    let offset = reader.u64().await?;
    let Some(dtype) = DType::from_id(id) else {
        return Err(match retired(id) {
            Some(retired) => GgufError::RetiredDtype { tensor: name, id, name: retired },
            None => GgufError::UnknownDtype { tensor: name, id },
        });
    };
    TensorInfo::new(name, &dims, dtype, offset)
}
