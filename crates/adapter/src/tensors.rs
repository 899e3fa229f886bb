//! A safetensors file whose tensors are matrices of floats.

use std::collections::HashMap;

use rullama_gguf::{DType, quant};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::{error::AdapterError, halves::Matrix};

/// An open file.
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    tensors: SafeTensors<'a>,
    metadata: HashMap<String, String>,
}

impl<'a> File<'a> {
    pub(crate) fn open(name: &'a str, bytes: &'a [u8]) -> Result<Self, AdapterError> {
        let wrong = |error: safetensors::SafeTensorError| AdapterError::NotAnAdapter {
            name: name.into(),
            why: error.to_string(),
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
        let metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
        let tensors = SafeTensors::deserialize(bytes).map_err(wrong)?;
        Ok(Self { name, tensors, metadata })
    }

    /// A string of the file's own metadata.
    pub(crate) fn said(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// All tensors, sorted by name.
    pub(crate) fn tensors(&self) -> Vec<(&str, TensorView<'a>)> {
        let mut all: Vec<_> = self.tensors.iter().collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }
}

/// A tensor as numbers.
pub(crate) fn matrix(name: &str, tensor: &TensorView<'_>) -> Result<Matrix, AdapterError> {
    let &[rows, columns] = tensor.shape() else {
        let shape = tensor.shape().iter().map(|size| *size as u64).collect();
        return Err(AdapterError::NotAMatrix { tensor: name.into(), shape });
    };
    if rows == 0 || columns == 0 {
        let shape = vec![rows as u64, columns as u64];
        return Err(AdapterError::NotAMatrix { tensor: name.into(), shape });
    }
    let dtype = match tensor.dtype() {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        other => {
            return Err(AdapterError::DType { tensor: name.into(), dtype: other.to_string() });
        }
    };
    // The container checked that the bytes are those of the shape.
    let mut numbers = vec![0.0; rows * columns];
    quant::dequantize(dtype, tensor.data(), &mut numbers)?;
    Ok(Matrix { experts: 1, rows, columns, numbers })
}
