//! Tensors of a model file as JSON.

use rullama_gguf::TensorInfo;
use serde_json::json;

/// A tensor's description; the first dimension is the length of a row.
pub(crate) fn tensor(tensor: &TensorInfo) -> serde_json::Value {
    json!({
        "name": tensor.name(),
        "type": tensor.dtype().name(),
        "shape": tensor.dims(),
        "bytes": tensor.nbytes(),
    })
}
