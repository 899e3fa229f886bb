//! Writing files: adapters, converted models, tests.

use std::io::{self, Read, Write};

use bytes::Bytes;

use crate::{
    array::Array,
    dtype::DType,
    entries::KEY_LIMIT,
    error::GgufError,
    header::NAME_LIMIT,
    layout::{self, ALIGNMENT_KEY},
    metadata::Entry,
    named::NamedList,
    tensor::TensorInfo,
    value::{ARRAY_ID, Kind, Value},
};

/// A file to be written: metadata and tensors in the given order.
#[derive(Debug, Clone)]
pub struct Writer {
    version: u32,
    entries: Vec<Entry>,
    tensors: Vec<Tensor>,
}

#[derive(Debug, Clone)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
    dtype: DType,
    bytes: Bytes,
}

impl Default for Writer {
    fn default() -> Self {
        Self { version: 3, entries: vec![], tensors: vec![] }
    }
}

impl Writer {
    /// An empty file of version 3.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes `version`, 2 or 3: the layout is the same.
    #[must_use]
    pub fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Aligns tensors to `alignment` bytes and adds the metadata key.
    #[must_use]
    pub fn alignment(self, alignment: u32) -> Self {
        self.kv(ALIGNMENT_KEY, alignment)
    }

    /// Adds a metadata entry.
    #[must_use]
    pub fn kv(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.entries.push(Entry { key: key.into(), value: value.into() });
        self
    }

    /// Adds a tensor whose `bytes` are already in the format of `dtype`
    /// (see [`quantize`](crate::quant::quantize)).
    #[must_use]
    pub fn tensor(
        mut self,
        name: impl Into<String>,
        dims: &[u64],
        dtype: DType,
        bytes: impl Into<Bytes>,
    ) -> Self {
        let (name, dims, bytes) = (name.into(), dims.to_vec(), bytes.into());
        self.tensors.push(Tensor { name, dims, dtype, bytes });
        self
    }

    /// The file as bytes.
    pub fn finish(self) -> Result<Vec<u8>, GgufError> {
        let mut file = Vec::new();
        self.write_to(&mut file)?;
        Ok(file)
    }

    /// Writes the file; refuses contents that could not be opened again.
    pub fn write_to(self, mut out: impl Write) -> Result<(), GgufError> {
        let Self { version, entries, tensors } = self;
        if !matches!(version, 2 | 3) {
            return Err(GgufError::UnsupportedVersion { found: version });
        }
        let entries = NamedList::new(entries).map_err(|key| GgufError::DuplicateKey { key })?;
        let alignment = layout::alignment(&entries)?;
        let infos = table(&tensors, alignment)?;

        let mut header = Vec::new();
        header.extend_from_slice(b"GGUF");
        header.extend_from_slice(&version.to_le_bytes());
        header.extend_from_slice(&(tensors.len() as u64).to_le_bytes());
        header.extend_from_slice(&(entries.items().len() as u64).to_le_bytes());
        for entry in entries.items() {
            put_entry(&mut header, entry)?;
        }
        for info in infos.items() {
            put_tensor(&mut header, info)?;
        }
        out.write_all(&header)?;
        if !tensors.is_empty() {
            pad(&mut out, header.len(), alignment)?;
        }
        for tensor in tensors {
            out.write_all(&tensor.bytes)?;
            pad(&mut out, tensor.bytes.len(), alignment)?;
        }
        Ok(())
    }
}

/// The tensor table: tensors one after another, each padded to the alignment.
fn table(tensors: &[Tensor], alignment: u32) -> Result<NamedList<TensorInfo>, GgufError> {
    let (mut infos, mut offset) = (vec![], 0u64);
    for Tensor { name, dims, dtype, bytes } in tensors {
        let info = TensorInfo::new(name.clone(), dims, *dtype, offset)?;
        let (expected, found) = (info.nbytes(), bytes.len() as u64);
        if expected != found {
            return Err(GgufError::TensorLength { tensor: name.clone(), expected, found });
        }
        offset += found.next_multiple_of(alignment.into());
        infos.push(info);
    }
    NamedList::new(infos).map_err(|tensor| GgufError::DuplicateTensor { tensor })
}

fn pad(out: &mut impl Write, written: usize, alignment: u32) -> io::Result<()> {
    let written = written as u64;
    let padding = written.next_multiple_of(alignment.into()) - written;
    io::copy(&mut io::repeat(0).take(padding), out)?;
    Ok(())
}

fn put_string(out: &mut Vec<u8>, string: &str) {
    out.extend_from_slice(&(string.len() as u64).to_le_bytes());
    out.extend_from_slice(string.as_bytes());
}

fn put_entry(out: &mut Vec<u8>, Entry { key, value }: &Entry) -> Result<(), GgufError> {
    let (at, length, limit) = (out.len() as u64, key.len() as u64, KEY_LIMIT);
    if length > limit {
        return Err(GgufError::KeyTooLong { at, length, limit });
    }
    put_string(out, key);
    put_value(out, value);
    Ok(())
}

fn put_tensor(out: &mut Vec<u8>, info: &TensorInfo) -> Result<(), GgufError> {
    let (at, length, limit) = (out.len() as u64, info.name().len() as u64, NAME_LIMIT);
    if length > limit {
        return Err(GgufError::NameTooLong { at, length, limit });
    }
    put_string(out, info.name());
    let count = u32::try_from(info.dims().len()).expect("at most four dimensions");
    out.extend_from_slice(&count.to_le_bytes());
    for dim in info.dims() {
        out.extend_from_slice(&dim.to_le_bytes());
    }
    out.extend_from_slice(&info.dtype().id().to_le_bytes());
    out.extend_from_slice(&info.offset().to_le_bytes());
    Ok(())
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    let id = match value.kind() {
        Kind::One(value_type) => value_type.id(),
        Kind::Array(_) => ARRAY_ID,
    };
    out.extend_from_slice(&id.to_le_bytes());
    match value {
        Value::U8(v) => out.extend(v.to_le_bytes()),
        Value::I8(v) => out.extend(v.to_le_bytes()),
        Value::U16(v) => out.extend(v.to_le_bytes()),
        Value::I16(v) => out.extend(v.to_le_bytes()),
        Value::U32(v) => out.extend(v.to_le_bytes()),
        Value::I32(v) => out.extend(v.to_le_bytes()),
        Value::U64(v) => out.extend(v.to_le_bytes()),
        Value::I64(v) => out.extend(v.to_le_bytes()),
        Value::F32(v) => out.extend(v.to_le_bytes()),
        Value::F64(v) => out.extend(v.to_le_bytes()),
        Value::Bool(v) => out.push((*v).into()),
        Value::String(v) => put_string(out, v),
        Value::Array(v) => put_array(out, v),
    }
}

fn put_array(out: &mut Vec<u8>, array: &Array) {
    out.extend_from_slice(&array.element_type().id().to_le_bytes());
    out.extend_from_slice(&(array.len() as u64).to_le_bytes());
    match array {
        Array::U8(v) => out.extend_from_slice(v),
        Array::I8(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::U16(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::I16(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::U32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::I32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::U64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::I64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::F32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::F64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        Array::Bool(v) => out.extend(v.iter().map(|&v| u8::from(v))),
        Array::String(v) => v.iter().for_each(|v| put_string(out, v)),
    }
}
