//! Metadata arrays, stored compactly: a vocabulary has hundreds of thousands of strings.

use std::sync::Arc;

use crate::value::ValueType;

/// A metadata array.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is named after what it holds")]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    String(StringArray),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

impl Array {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::I8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::I16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::String(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::F64(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ValueType {
        match self {
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
        }
    }

    /// The elements, if they are integers of any width.
    pub fn integers(&self) -> Option<Box<dyn Iterator<Item = i128> + '_>> {
        fn widen<T: Copy + Into<i128>>(v: &[T]) -> Option<Box<dyn Iterator<Item = i128> + '_>> {
            Some(Box::new(v.iter().map(|&v| v.into())))
        }
        match self {
            Self::U8(v) => widen(v),
            Self::I8(v) => widen(v),
            Self::U16(v) => widen(v),
            Self::I16(v) => widen(v),
            Self::U32(v) => widen(v),
            Self::I32(v) => widen(v),
            Self::U64(v) => widen(v),
            Self::I64(v) => widen(v),
            Self::F32(_) | Self::F64(_) | Self::Bool(_) | Self::String(_) => None,
        }
    }
}

/// Strings in one allocation, which clones share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringArray(Arc<Slab>);

/// The strings concatenated, and the end of each.
#[derive(Debug, Default, PartialEq, Eq)]
struct Slab {
    text: String,
    ends: Vec<usize>,
}

impl StringArray {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.0.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// String number `index`.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.0.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.0.ends[index - 1] };
        Some(&self.0.text[start..end])
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.0.ends.iter().map(move |&end| &self.0.text[std::mem::replace(&mut start, end)..end])
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringArray {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut slab = Slab::default();
        for string in strings {
            slab.text.push_str(string.as_ref());
            slab.ends.push(slab.text.len());
        }
        Self(Arc::new(slab))
    }
}

/// A [`StringArray`] under construction.
#[derive(Debug, Default)]
pub(crate) struct StringArrayBuilder {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl StringArrayBuilder {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn push(&mut self, string: &[u8]) {
        self.text.extend_from_slice(string);
        self.ends.push(self.text.len());
    }

    /// The strings, or the index of one that is not UTF-8.
    ///
    /// Validating the concatenation is several times faster than each string; then only the ends must be character
    /// boundaries.
    pub(crate) fn finish(self) -> Result<StringArray, usize> {
        let Self { text, mut ends } = self;
        let mut text = String::from_utf8(text).map_err(|error| {
            let bad = error.utf8_error().valid_up_to();
            ends.partition_point(|&end| end <= bad)
        })?;
        if let Some(index) = ends.iter().position(|&end| !text.is_char_boundary(end)) {
            return Err(index);
        }
        text.shrink_to_fit();
        ends.shrink_to_fit();
        Ok(StringArray(Arc::new(Slab { text, ends })))
    }
}
