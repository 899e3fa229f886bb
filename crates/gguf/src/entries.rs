//! The header's metadata, checked while it is read.

use crate::{
    array::{Array, StringArray, StringArrayBuilder},
    error::GgufError,
    metadata::Entry,
    reader::Reader,
    value::{ARRAY_ID, Value, ValueType},
};

/// Longest key the format allows.
pub(crate) const KEY_LIMIT: u64 = 65_535;

/// The next `count` entries.
pub(crate) async fn read(reader: &mut Reader<'_>, count: u64) -> Result<Vec<Entry>, GgufError> {
    let mut entries = Vec::new();
    for _ in 0..count {
        let at = reader.at();
        let length = reader.u64().await?;
        if length > KEY_LIMIT && length <= reader.left() {
            return Err(GgufError::KeyTooLong { at, length, limit: KEY_LIMIT });
        }
        let key = String::from_utf8(reader.string(at, length).await?)
            .map_err(|_| GgufError::KeyNotUtf8 { at })?;
        let value = value(reader, &key).await?;
        entries.push(Entry { key, value });
    }
    Ok(entries)
}

async fn value(reader: &mut Reader<'_>, key: &str) -> Result<Value, GgufError> {
    let id = reader.u32().await?;
    if id == ARRAY_ID {
        return Ok(Value::Array(array(reader, key).await?));
    }
    Ok(match value_type(key, id)? {
        ValueType::U8 => Value::U8(number(reader).await?),
        ValueType::I8 => Value::I8(number(reader).await?),
        ValueType::U16 => Value::U16(number(reader).await?),
        ValueType::I16 => Value::I16(number(reader).await?),
        ValueType::U32 => Value::U32(number(reader).await?),
        ValueType::I32 => Value::I32(number(reader).await?),
        ValueType::U64 => Value::U64(number(reader).await?),
        ValueType::I64 => Value::I64(number(reader).await?),
        ValueType::F32 => Value::F32(number(reader).await?),
        ValueType::F64 => Value::F64(number(reader).await?),
        ValueType::Bool => Value::Bool(boolean(key, number(reader).await?)?),
        ValueType::String => {
            let at = reader.at();
            let length = reader.u64().await?;
            let string = String::from_utf8(reader.string(at, length).await?);
            Value::String(string.map_err(|_| GgufError::ValueNotUtf8 { key: key.into() })?)
        }
    })
}

async fn array(reader: &mut Reader<'_>, key: &str) -> Result<Array, GgufError> {
    let at = reader.at();
    let id = reader.u32().await?;
    if id == ARRAY_ID {
        return Err(GgufError::NestedArray { key: key.into() });
    }
    let element = value_type(key, id)?;
    let count = reader.u64().await?;
    let least = element.min_bytes();
    if count > reader.left() / least {
        return Err(GgufError::ArrayPastEnd { key: key.into(), count, at, len: reader.len() });
    }
    reader.check(count * least)?;
    Ok(match element {
        ValueType::U8 => Array::U8(numbers(reader, count).await?),
        ValueType::I8 => Array::I8(numbers(reader, count).await?),
        ValueType::U16 => Array::U16(numbers(reader, count).await?),
        ValueType::I16 => Array::I16(numbers(reader, count).await?),
        ValueType::U32 => Array::U32(numbers(reader, count).await?),
        ValueType::I32 => Array::I32(numbers(reader, count).await?),
        ValueType::U64 => Array::U64(numbers(reader, count).await?),
        ValueType::I64 => Array::I64(numbers(reader, count).await?),
        ValueType::F32 => Array::F32(numbers(reader, count).await?),
        ValueType::F64 => Array::F64(numbers(reader, count).await?),
        ValueType::Bool => {
            let bytes: Vec<u8> = numbers(reader, count).await?;
            Array::Bool(bytes.into_iter().map(|b| boolean(key, b)).collect::<Result<_, _>>()?)
        }
        ValueType::String => Array::String(strings(reader, key, count).await?),
    })
}

fn value_type(key: &str, id: u32) -> Result<ValueType, GgufError> {
    ValueType::from_id(id).ok_or_else(|| GgufError::UnknownValueType { key: key.into(), id })
}

fn boolean(key: &str, byte: u8) -> Result<bool, GgufError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(GgufError::InvalidBool { key: key.into(), byte }),
    }
}

/// A little-endian number.
trait Number: Sized {
    const BYTES: usize;
    fn decode(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($($rust:ty)*) => {$(
        impl Number for $rust {
            const BYTES: usize = size_of::<$rust>();
            fn decode(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("BYTES bytes"))
            }
        }
    )*};
}

number!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

async fn number<T: Number>(reader: &mut Reader<'_>) -> Result<T, GgufError> {
    reader.require(T::BYTES as u64).await?;
    let number = T::decode(&reader.buffered()[..T::BYTES]);
    reader.advance(T::BYTES);
    Ok(number)
}

/// Decodes the buffered elements, then the next: memory grows with the bytes read, not with the claimed count.
async fn numbers<T: Number>(reader: &mut Reader<'_>, count: u64) -> Result<Vec<T>, GgufError> {
    let mut numbers = Vec::new();
    loop {
        let left = count - numbers.len() as u64;
        if left == 0 {
            return Ok(numbers);
        }
        reader.require(T::BYTES as u64).await?;
        let buffered = reader.buffered();
        let here = buffered.len() / T::BYTES;
        let bytes = T::BYTES * usize::try_from(left).map_or(here, |left| left.min(here));
        numbers.extend(buffered[..bytes].chunks_exact(T::BYTES).map(T::decode));
        reader.advance(bytes);
    }
}

async fn strings(reader: &mut Reader<'_>, key: &str, count: u64) -> Result<StringArray, GgufError> {
    let mut strings = StringArrayBuilder::default();
    while (strings.len() as u64) < count {
        // Almost all strings are in the buffer: no awaiting, no checks against the file length.
        let mut rest = reader.buffered();
        let before = rest.len();
        while (strings.len() as u64) < count
            && let Some((length, after)) = rest.split_first_chunk()
            && let Ok(length) = usize::try_from(u64::from_le_bytes(*length))
            && let Some((string, after)) = after.split_at_checked(length)
        {
            strings.push(string);
            rest = after;
        }
        let taken = before - rest.len();
        reader.advance(taken);
        // The string at the end of the buffer.
        if (strings.len() as u64) < count {
            let at = reader.at();
            let length = reader.u64().await?;
            strings.push(&reader.string(at, length).await?);
        }
    }
    strings
        .finish()
        .map_err(|index| GgufError::ElementNotUtf8 { key: key.into(), index: index as u64 })
}
