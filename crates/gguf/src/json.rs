//! Metadata values as JSON.

use serde_json::{Value as Json, json};

use crate::{Array, Value};

impl Value {
    /// The value as JSON. An f32 keeps its own shortest spelling (0.95, not 0.949999988079071); numbers that JSON does not have, such as NaN,
    /// become null.
    pub fn to_json(&self) -> Json {
        match self {
            Self::U8(n) => json!(n),
            Self::I8(n) => json!(n),
            Self::U16(n) => json!(n),
            Self::I16(n) => json!(n),
            Self::U32(n) => json!(n),
            Self::I32(n) => json!(n),
            Self::U64(n) => json!(n),
            Self::I64(n) => json!(n),
            Self::F32(n) => float(*n),
            Self::F64(n) => json!(n),
            Self::Bool(flag) => json!(flag),
            Self::String(text) => json!(text),
            Self::Array(array) => elements(array),
        }
    }
}

/// JSON's numbers are f64: of those that round to this f32, the one with the fewest digits. serde_json reads it, whose tables the wasm
/// has anyway, unlike those of `str::parse`; it refuses what JSON does not have.
fn float(n: f32) -> Json {
    serde_json::from_str::<f64>(&n.to_string()).map_or(Json::Null, |n| json!(n))
}

fn elements(array: &Array) -> Json {
    match array {
        Array::U8(all) => json!(all),
        Array::I8(all) => json!(all),
        Array::U16(all) => json!(all),
        Array::I16(all) => json!(all),
        Array::U32(all) => json!(all),
        Array::I32(all) => json!(all),
        Array::U64(all) => json!(all),
        Array::I64(all) => json!(all),
        Array::F32(all) => all.iter().map(|n| float(*n)).collect(),
        Array::F64(all) => json!(all),
        Array::Bool(all) => json!(all),
        Array::String(all) => all.iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::{Array, StringArray, Value};

    #[test]
    fn values_of_every_type() {
        let strings: StringArray = ["a", "\"b\""].into_iter().collect();
        for (value, wanted) in [
            (Value::U8(255), json!(255)),
            (Value::I8(-128), json!(-128)),
            (Value::U16(7), json!(7)),
            (Value::I16(-7), json!(-7)),
            (Value::U32(32), json!(32)),
            (Value::I32(-32), json!(-32)),
            (Value::U64(u64::MAX), json!(u64::MAX)),
            (Value::I64(i64::MIN), json!(i64::MIN)),
            (Value::F32(0.95), json!(0.95)),
            (Value::F32(1e-6), json!(1e-6)),
            (Value::F32(f32::NAN), json!(null)),
            (Value::F32(f32::INFINITY), json!(null)),
            (Value::F64(0.1), json!(0.1)),
            (Value::F64(f64::NEG_INFINITY), json!(null)),
            (Value::Bool(true), json!(true)),
            (Value::String("x".into()), json!("x")),
            (Value::Array(Array::U64(vec![0, u64::MAX])), json!([0, u64::MAX])),
            (Value::Array(Array::F32(vec![0.1, f32::NAN])), json!([0.1, null])),
            (Value::Array(Array::Bool(vec![])), json!([])),
            (Value::Array(Array::String(strings)), json!(["a", "\"b\""])),
        ] {
            assert_eq!(value.to_json(), wanted, "{value:?}");
        }
        assert_eq!(Value::F32(0.95).to_json().to_string(), "0.95");
        assert_eq!(Value::F32(1e6).to_json().to_string(), "1000000.0");
    }

    proptest! {
        #[test]
        fn floats_come_back_bit_for_bit(n: f32) {
            prop_assume!(n.is_finite());
            let written = Value::F32(n).to_json().to_string();
            let read: f32 = written.parse().expect("a number");
            prop_assert_eq!(read.to_bits(), n.to_bits());
        }
    }
}
