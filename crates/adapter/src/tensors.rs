//! Tensors of a safetensors file as f32 matrices.

use rullama_gguf::{DType, quant};
use safetensors::{Dtype, tensor::TensorInfo};

use crate::{container::Container, error::AdapterError, halves::Matrix};

/// Reads a tensor as an f32 matrix.
pub(crate) async fn matrix(
    file: &Container,
    name: &str,
    tensor: &TensorInfo,
) -> Result<Matrix, AdapterError> {
    let &[rows, columns] = &tensor.shape[..] else {
        let shape = tensor.shape.iter().map(|size| *size as u64).collect();
        return Err(AdapterError::NotAMatrix { tensor: name.into(), shape });
    };
    if rows == 0 || columns == 0 {
        let shape = vec![rows as u64, columns as u64];
        return Err(AdapterError::NotAMatrix { tensor: name.into(), shape });
    }
    let dtype = match tensor.dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        other => {
            return Err(AdapterError::DType { tensor: name.into(), dtype: other.to_string() });
        }
    };
    let bytes = file.bytes(tensor).await?;
    // The container checked that the byte count matches the shape.
    let mut values = vec![0.0; rows * columns];
    quant::dequantize(dtype, &bytes, &mut values)?;
    Ok(Matrix { experts: 1, rows, columns, values })
}
