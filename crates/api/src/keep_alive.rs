//! How long a model stays loaded: seconds or a Go duration.

use std::time::Duration;

use serde_json::Value;

use crate::ApiError;
use crate::fields::Field;

/// How long a model stays loaded after its last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAlive {
    /// For this time; zero unloads it at once.
    For(Duration),
    /// Until the server ends or memory is needed.
    Forever,
}

impl KeepAlive {
    /// Parses a Go duration (`1h30m`, `0`) or a number of seconds; negative means forever. The format of
    /// `OLLAMA_KEEP_ALIVE`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rullama_api::KeepAlive;
    ///
    /// assert_eq!(KeepAlive::parse("1h30m"), Some(KeepAlive::For(Duration::from_secs(5400))));
    /// assert_eq!(KeepAlive::parse("-1"), Some(KeepAlive::Forever));
    /// assert_eq!(KeepAlive::parse("soon"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(seconds) = text.parse::<f64>() {
            return Self::of_seconds(seconds);
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let duration = go_duration(unsigned)?;
        Some(if text.starts_with('-') && !duration.is_zero() {
            Self::Forever
        } else {
            Self::For(duration)
        })
    }

    /// Whether the model is unloaded as soon as it is idle.
    pub fn unloads_at_once(self) -> bool {
        self == Self::For(Duration::ZERO)
    }

    pub(crate) fn read(field: &Field) -> Result<Self, ApiError> {
        let read = match &field.value {
            Value::Number(seconds) => seconds.as_f64().and_then(Self::of_seconds),
            Value::String(text) => Self::parse(text),
            _ => None,
        };
        read.ok_or_else(|| field.wrong("a number of seconds or a duration such as \"5m\""))
    }

    fn of_seconds(seconds: f64) -> Option<Self> {
        match seconds {
            _ if seconds.is_nan() => None,
            _ if seconds < 0.0 => Some(Self::Forever),
            // Too long for a `Duration`.
            _ => Some(Duration::try_from_secs_f64(seconds).map_or(Self::Forever, Self::For)),
        }
    }
}

/// A sequence of numbers with units, without a sign.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0_f64;
    while !rest.is_empty() || rest.len() == text.len() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number * unit;
        rest = &rest[end..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let seconds = |s| Some(KeepAlive::For(Duration::from_secs_f64(s)));
        for (text, expected) in [
            ("5m", seconds(300.0)),
            ("1h30m", seconds(5400.0)),
            ("1.5s", seconds(1.5)),
            ("100ms", seconds(0.1)),
            ("0", seconds(0.0)),
            ("0s", seconds(0.0)),
            ("-0s", seconds(0.0)),
            ("+5s", seconds(5.0)),
            ("300", seconds(300.0)),
            ("-1", Some(KeepAlive::Forever)),
            ("-1m", Some(KeepAlive::Forever)),
            ("1e300", Some(KeepAlive::Forever)),
            ("", None),
            ("5", seconds(5.0)),
            ("m", None),
            ("5x", None),
            ("5m3", None),
            ("--5m", None),
            ("NaN", None),
            ("1..5s", None),
        ] {
            assert_eq!(KeepAlive::parse(text), expected, "{text:?}");
        }
    }
}
