//! One option as a client sent it, parsed as the expected type.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sampling::SamplingError;

/// An option's name and its JSON value.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

impl Given<'_> {
    pub(super) fn number(self) -> Result<f32, SamplingError> {
        self.value.as_f64().map(|number| number as f32).ok_or_else(|| self.wrong("a number"))
    }

    /// An integer; `40.0` is accepted, because JavaScript does not distinguish them.
    pub(super) fn integer<T: TryFrom<i64>>(self) -> Result<T, SamplingError> {
        integer(self.value)
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| self.wrong("a whole number within its range"))
    }

    pub(super) fn boolean(self) -> Result<bool, SamplingError> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn texts(self) -> Result<Vec<String>, SamplingError> {
        let texts = self.value.as_array().and_then(|texts| {
            texts.iter().map(|text| text.as_str().map(String::from)).collect::<Option<_>>()
        });
        texts.ok_or_else(|| self.wrong("a list of strings"))
    }

    /// Biases and suppressed tokens: `{"12": 1.5, "13": false}` or `[[12, 1.5], [13, false]]`, where false
    /// suppresses.
    pub(super) fn biases(self) -> Result<(BTreeMap<u32, f32>, Vec<u32>), SamplingError> {
        let wrong = || self.wrong("an object or a list of pairs of token ids and numbers");
        let pairs: Option<Vec<(u32, &Value)>> = match self.value {
            Value::Object(map) => {
                map.iter().map(|(id, bias)| Some((id.parse().ok()?, bias))).collect()
            }
            Value::Array(pairs) => pairs.iter().map(pair).collect(),
            _ => None,
        };
        let mut biases = BTreeMap::new();
        let mut suppressed = Vec::new();
        for (id, bias) in pairs.ok_or_else(wrong)? {
            match bias {
                Value::Bool(false) => suppressed.push(id),
                _ => _ = biases.insert(id, bias.as_f64().ok_or_else(wrong)? as f32),
            }
        }
        Ok((biases, suppressed))
    }

    fn wrong(self, expected: &'static str) -> SamplingError {
        const SHOWN: usize = 60;
        let mut got = self.value.to_string();
        if let Some((end, _)) = got.char_indices().nth(SHOWN) {
            got.truncate(end);
            got.push('…');
        }
        SamplingError::WrongType { option: self.name.into(), expected, got }
    }
}

/// Name of the JSON type, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn pair(value: &Value) -> Option<(u32, &Value)> {
    match value.as_array()?.as_slice() {
        [id, bias] => Some((u32::try_from(integer(id)?).ok()?, bias)),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    // Up to 2⁵³ every integral f64 is exactly one i64.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
    })
}
