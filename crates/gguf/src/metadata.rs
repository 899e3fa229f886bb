//! Typed access to a file's metadata.

use crate::{
    Gguf,
    array::{Array, StringArray},
    error::GgufError,
    named::Named,
    value::Value,
};

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The key: "general.architecture".
    pub key: String,
    /// The value.
    pub value: Value,
}

impl Named for Entry {
    fn name(&self) -> &str {
        &self.key
    }
}

/// Typed accessors fail with [`GgufError::MissingKey`] or [`GgufError::WrongType`];
/// [`Optional`](crate::Optional) distinguishes the two.
impl Gguf {
    /// All metadata in file order.
    pub fn metadata(&self) -> &[Entry] {
        self.metadata.items()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        Some(&self.metadata.get(key)?.value)
    }

    /// An integer of any width that fits in a `u32`.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        let value = self.integer(key, "u32")?;
        u32::try_from(value).map_err(|_| out_of_range(key, value, "u32"))
    }

    /// An integer of any width that fits in a `u64`.
    pub fn u64(&self, key: &str) -> Result<u64, GgufError> {
        let value = self.integer(key, "u64")?;
        u64::try_from(value).map_err(|_| out_of_range(key, value, "u64"))
    }

    /// A float.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        match *self.required(key)? {
            Value::F32(value) => Ok(value),
            ref other => Err(wrong_type(key, "f32", other)),
        }
    }

    /// A bool.
    pub fn bool(&self, key: &str) -> Result<bool, GgufError> {
        match *self.required(key)? {
            Value::Bool(value) => Ok(value),
            ref other => Err(wrong_type(key, "bool", other)),
        }
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        match self.required(key)? {
            Value::String(value) => Ok(value),
            other => Err(wrong_type(key, "string", other)),
        }
    }

    /// Integers of any width: an array, or a single one.
    pub fn integers(&self, key: &str) -> Result<Vec<i64>, GgufError> {
        let value = self.required(key)?;
        let fit = |v: i128| i64::try_from(v).map_err(|_| out_of_range(key, v, "i64"));
        if let Some(integer) = value.integer() {
            return Ok(vec![fit(integer)?]);
        }
        let integers = if let Value::Array(array) = value { array.integers() } else { None };
        integers
            .ok_or_else(|| wrong_type(key, "integer or array of integers", value))?
            .map(fit)
            .collect()
    }

    /// An array of floats.
    pub fn floats(&self, key: &str) -> Result<&[f32], GgufError> {
        match self.required(key)? {
            Value::Array(Array::F32(values)) => Ok(values),
            other => Err(wrong_type(key, "array of f32", other)),
        }
    }

    /// An array of bools.
    pub fn bools(&self, key: &str) -> Result<&[bool], GgufError> {
        match self.required(key)? {
            Value::Array(Array::Bool(values)) => Ok(values),
            other => Err(wrong_type(key, "array of bool", other)),
        }
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Result<&StringArray, GgufError> {
        match self.required(key)? {
            Value::Array(Array::String(values)) => Ok(values),
            other => Err(wrong_type(key, "array of string", other)),
        }
    }

    fn required(&self, key: &str) -> Result<&Value, GgufError> {
        self.get(key).ok_or_else(|| GgufError::MissingKey { key: key.into() })
    }

    fn integer(&self, key: &str, expected: &'static str) -> Result<i128, GgufError> {
        let value = self.required(key)?;
        value.integer().ok_or_else(|| wrong_type(key, expected, value))
    }
}

fn wrong_type(key: &str, expected: &'static str, found: &Value) -> GgufError {
    GgufError::WrongType { key: key.into(), expected, found: found.kind() }
}

fn out_of_range(key: &str, value: i128, expected: &'static str) -> GgufError {
    GgufError::OutOfRange { key: key.into(), value, expected }
}
