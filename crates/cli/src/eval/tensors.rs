//! Writes a safetensors file sequentially: all shapes are declared first, so that tensors need not be kept in memory.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::output_file::OutputFile;

/// Element type; both have four bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    F32,
    I32,
}

/// A tensor that will be written.
pub(super) struct Declared {
    name: String,
    kind: Kind,
    shape: Vec<usize>,
}

impl Declared {
    pub(super) fn new(name: &str, kind: Kind, shape: &[usize]) -> Self {
        Self { name: name.into(), kind, shape: shape.to_vec() }
    }
}

/// A file being written; it gets its name when it is complete.
pub(super) struct TensorFile {
    path: PathBuf,
    file: OutputFile,
    left: u64,
}

impl TensorFile {
    /// Starts a file of these tensors; their contents follow in the same order.
    pub(super) fn create(path: &Path, tensors: &[Declared]) -> Result<Self> {
        let mut header = Map::new();
        let mut end = 0u64;
        for tensor in tensors {
            let start = end;
            end += tensor.shape.iter().map(|n| *n as u64).product::<u64>() * 4;
            let dtype = match tensor.kind {
                Kind::F32 => "F32",
                Kind::I32 => "I32",
            };
            let entry =
                json!({ "dtype": dtype, "shape": tensor.shape, "data_offsets": [start, end] });
            header.insert(tensor.name.clone(), entry);
        }
        let mut header = Value::Object(header).to_string();
        // Tensors start at multiples of eight; the format pads the header with spaces.
        header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
        let file = OutputFile::create(path)?;
        let mut file = Self { path: path.into(), file, left: 8 + end + header.len() as u64 };
        file.bytes(&(header.len() as u64).to_le_bytes())?;
        file.bytes(header.as_bytes())?;
        Ok(file)
    }

    /// Writes values of the current tensor.
    pub(super) fn floats(&mut self, values: &[f32]) -> Result<()> {
        values.iter().try_for_each(|value| self.bytes(&value.to_le_bytes()))
    }

    /// Writes ids of the current tensor.
    pub(super) fn ids(&mut self, ids: &[u32]) -> Result<()> {
        ids.iter().try_for_each(|id| self.bytes(&id.to_le_bytes()))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.left =
            self.left.checked_sub(bytes.len() as u64).context("more was written than declared")?;
        self.file.write_all(bytes).with_context(|| self.path.display().to_string())
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<()> {
        ensure!(self.left == 0, "{} bytes of {} are missing", self.left, self.path.display());
        self.file.finish()
    }
}
