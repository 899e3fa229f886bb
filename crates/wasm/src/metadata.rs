//! Metadata and tensors of a model file as JSON.

use rullama_gguf::{Array, TensorInfo, Value};
use serde_json::json;

/// A metadata value; numbers that JSON does not have, such as NaN, become null.
pub(crate) fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::U8(n) => json!(n),
        Value::I8(n) => json!(n),
        Value::U16(n) => json!(n),
        Value::I16(n) => json!(n),
        Value::U32(n) => json!(n),
        Value::I32(n) => json!(n),
        Value::F32(n) => json!(n),
        Value::Bool(flag) => json!(flag),
        Value::String(text) => json!(text),
        Value::U64(n) => json!(n),
        Value::I64(n) => json!(n),
        Value::F64(n) => json!(n),
        Value::Array(array) => json_array(array),
    }
}

fn json_array(array: &Array) -> serde_json::Value {
    match array {
        Array::U8(all) => json!(all),
        Array::I8(all) => json!(all),
        Array::U16(all) => json!(all),
        Array::I16(all) => json!(all),
        Array::U32(all) => json!(all),
        Array::I32(all) => json!(all),
        Array::F32(all) => json!(all),
        Array::Bool(all) => json!(all),
        Array::String(all) => all.iter().collect(),
        Array::U64(all) => json!(all),
        Array::I64(all) => json!(all),
        Array::F64(all) => json!(all),
    }
}

/// A tensor's description; the first dimension is the length of a row.
pub(crate) fn tensor(tensor: &TensorInfo) -> serde_json::Value {
    json!({
        "name": tensor.name(),
        "type": tensor.dtype().name(),
        "shape": tensor.dims(),
        "bytes": tensor.nbytes(),
    })
}
