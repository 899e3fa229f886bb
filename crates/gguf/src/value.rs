//! Metadata values: thirteen types, including arrays.

use std::fmt;

use crate::array::{Array, StringArray};

/// A metadata value.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is named after what it holds")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// The type of a scalar, or of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is named after its Rust type")]
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    U64,
    I64,
    F64,
}

/// The type of a value, for messages: "u32", "array of string".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A single value.
    One(ValueType),
    /// An array.
    Array(ValueType),
}

/// The id of arrays, the one type that is not a [`ValueType`].
pub(crate) const ARRAY_ID: u32 = 9;

impl ValueType {
    const ALL: [(u32, Self, &'static str); 12] = [
        (0, Self::U8, "u8"),
        (1, Self::I8, "i8"),
        (2, Self::U16, "u16"),
        (3, Self::I16, "i16"),
        (4, Self::U32, "u32"),
        (5, Self::I32, "i32"),
        (6, Self::F32, "f32"),
        (7, Self::Bool, "bool"),
        (8, Self::String, "string"),
        (10, Self::U64, "u64"),
        (11, Self::I64, "i64"),
        (12, Self::F64, "f64"),
    ];

    fn row(self) -> (u32, Self, &'static str) {
        let found = Self::ALL.into_iter().find(|&(_, t, _)| t == self);
        found.expect("the table holds every type")
    }

    pub(crate) fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&(i, _, _)| i == id).map(|(_, t, _)| t)
    }

    pub(crate) fn id(self) -> u32 {
        self.row().0
    }

    /// Minimum number of bytes of one value in a file.
    pub(crate) const fn min_bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::String | Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

impl Value {
    /// Its type.
    pub fn kind(&self) -> Kind {
        Kind::One(match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
            Self::Array(array) => return Kind::Array(array.element_type()),
        })
    }

    /// The value, if it is an integer of any width.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(v) => v.into(),
            Self::I8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::U64(v) => v.into(),
            Self::I64(v) => v.into(),
            _ => return None,
        })
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(t) => t.fmt(f),
            Self::Array(t) => write!(f, "array of {t}"),
        }
    }
}

macro_rules! from {
    ($($rust:ty => $variant:ident),* $(,)?) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Self {
                Self::$variant(value)
            }
        }
        impl From<Vec<$rust>> for Value {
            fn from(values: Vec<$rust>) -> Self {
                Self::Array(Array::$variant(values))
            }
        }
    )*};
}

from! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64,
    f32 => F32, f64 => F64, bool => Bool,
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<StringArray> for Value {
    fn from(values: StringArray) -> Self {
        Self::Array(Array::String(values))
    }
}
