//! Reads JSON objects field by field, with paths in the errors. Null means absent; unknown fields are ignored.

use serde_json::{Map, Value};

use crate::ApiError;

/// The fields of an object that have not been read yet.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    path: String,
}

/// A value and its path.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) value: Value,
    pub(crate) path: String,
}

impl Fields {
    /// Parses a request's body.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        match parse_json(body)? {
            Value::Object(map) => Ok(Self { map, path: String::new() }),
            _ => Err(ApiError::field("body", "a JSON object")),
        }
    }

    /// The path of a field of this object.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Removes and returns a field.
    pub(crate) fn take(&mut self, name: &str) -> Option<Field> {
        let value = self.map.shift_remove(name).filter(|value| !value.is_null())?;
        Some(Field { value, path: self.path(name) })
    }

    /// Removes and returns a required field.
    pub(crate) fn need(&mut self, name: &str) -> Result<Field, ApiError> {
        self.take(name).ok_or_else(|| ApiError::Missing { field: self.path(name) })
    }

    /// A field without removing it, to be echoed in the response.
    pub(crate) fn peek(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// The remaining fields.
    pub(crate) fn into_map(self) -> Map<String, Value> {
        self.map
    }

    pub(crate) fn string(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        self.take(name).map(Field::string).transpose()
    }

    pub(crate) fn boolean(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        self.take(name).map(Field::boolean).transpose()
    }

    pub(crate) fn whole(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
        expected: &'static str,
    ) -> Result<Option<i64>, ApiError> {
        self.take(name).map(|field| field.whole(range, expected)).transpose()
    }

    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<Field>, ApiError> {
        self.take(name).map_or_else(|| Ok(Vec::new()), Field::list)
    }

    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Self>, ApiError> {
        self.take(name).map(Field::object).transpose()
    }
}

impl Field {
    /// An error about this value.
    pub(crate) fn wrong(&self, expected: &'static str) -> ApiError {
        ApiError::field(self.path.clone(), expected)
    }

    pub(crate) fn string(self) -> Result<String, ApiError> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => Err(ApiError::field(self.path, "a string")),
        }
    }

    pub(crate) fn boolean(self) -> Result<bool, ApiError> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(crate) fn number(self) -> Result<f32, ApiError> {
        number(&self.value).ok_or_else(|| self.wrong("a number"))
    }

    /// An integer within `range`.
    pub(crate) fn whole(
        &self,
        range: std::ops::RangeInclusive<i64>,
        expected: &'static str,
    ) -> Result<i64, ApiError> {
        whole(&self.value).filter(|n| range.contains(n)).ok_or_else(|| self.wrong(expected))
    }

    pub(crate) fn list(self) -> Result<Vec<Self>, ApiError> {
        match self.value {
            Value::Array(items) => Ok(items
                .into_iter()
                .enumerate()
                .map(|(i, value)| Self { value, path: format!("{}[{i}]", self.path) })
                .collect()),
            _ => Err(ApiError::field(self.path, "a list")),
        }
    }

    pub(crate) fn object(self) -> Result<Fields, ApiError> {
        match self.value {
            Value::Object(map) => Ok(Fields { map, path: self.path }),
            _ => Err(ApiError::field(self.path, "an object")),
        }
    }

    /// One string or a list of strings.
    pub(crate) fn texts(self) -> Result<Vec<String>, ApiError> {
        match self.value {
            Value::String(text) => Ok(vec![text]),
            _ => self.list()?.into_iter().map(Self::string).collect(),
        }
    }

    /// Token ids, if this is a list of integers only.
    pub(crate) fn token_ids(&self) -> Option<Vec<u32>> {
        let items = self.value.as_array().filter(|items| !items.is_empty())?;
        items.iter().map(|item| u32::try_from(whole(item)?).ok()).collect()
    }
}

/// Parses any JSON value.
pub(crate) fn parse_json(body: &[u8]) -> Result<Value, ApiError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(ApiError::MissingBody);
    }
    serde_json::from_slice(body).map_err(|error| ApiError::Json { reason: error.to_string() })
}

/// An integer; `40.0` is one too, since JavaScript does not distinguish them.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    // Up to this magnitude, every integral f64 is exactly one i64.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
    })
}

/// A number that is finite as an f32.
pub(crate) fn number(value: &Value) -> Option<f32> {
    value.as_f64().map(|number| number as f32).filter(|number| number.is_finite())
}
