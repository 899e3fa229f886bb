//! Python's formatting: the templates assume it for numbers, whitespace and other values.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// `str.strip()`: strips Unicode whitespace and the four separators U+001C to U+001F.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.isspace()` of one character.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `str(value)`.
pub(crate) fn display(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => {
            let mut out = String::new();
            write_repr(&mut out, other);
            out
        }
    }
}

/// `bool(value)`.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// An integer as it is, a float as `repr` prints it.
///
/// Integers beyond 64 bits, and the integer -0, arrive here as floats (a limit of the JSON parser) and are printed as
/// such.
pub(crate) fn number(n: &Number) -> String {
    match n.as_f64() {
        Some(x) if n.is_f64() => float(x),
        _ => n.to_string(),
    }
}

/// `repr` of a float: the shortest digits that round-trip, with an exponent outside 1e-4 ≤ |x| < 1e16.
pub(crate) fn float(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} always writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes a decimal exponent");
    if (-4..16).contains(&exponent) || x == 0.0 {
        return format!("{x:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(text) => write_str_repr(out, text),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write_repr(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write_str_repr(out, key);
                out.push_str(": ");
                write_repr(out, item);
            }
            out.push('}');
        }
    }
}

/// `repr` of a string: single quotes, unless the text has single but no double quotes.
pub(crate) fn write_str_repr(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                // Writing to a string cannot fail.
                let _ = match u32::from(c) {
                    code @ 0..=0xff => write!(out, "\\x{code:02x}"),
                    code @ 0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// `str.isprintable()` of one character. Rust's debug format escapes the same categories, but also a combining mark at the
/// start of a string: hence the letter before it.
fn is_printable(c: char) -> bool {
    c.is_ascii_graphic() || c == ' ' || !format!("x{c}").escape_debug().any(|e| e == '\\')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_print_as_in_python() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e21, "1e+21"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e-7, "1e-07"),
            (2.5e-300, "2.5e-300"),
            (f64::MAX, "1.7976931348623157e+308"),
        ];
        for (x, text) in cases {
            assert_eq!(float(x), text);
        }
    }

    #[test]
    fn values_print_as_in_python() {
        let cases = [
            (json!(null), "None"),
            (json!([true, false, 3, 1.0, "a"]), "[True, False, 3, 1.0, 'a']"),
            (json!({"k": ["it's", "\"", "'\""]}), r#"{'k': ["it's", '"', '\'"']}"#),
            (
                json!(["\n\t\\\u{1}\u{7f}\u{a0}é\u{301}\u{200b}\u{e000}\u{1f600}\u{f0000}"]),
                "['\\n\\t\\\\\\x01\\x7f\\xa0é\u{301}\\u200b\\ue000\u{1f600}\\U000f0000']",
            ),
            (json!("plain"), "plain"),
            (json!(18446744073709551615u64), "18446744073709551615"),
        ];
        for (value, text) in cases {
            assert_eq!(display(&value), text);
        }
    }

    #[test]
    fn strip_removes_pythons_whitespace() {
        assert_eq!(strip("\u{1c}\u{1f}\u{85}\u{3000} a\u{200b} \u{b}"), "a\u{200b}");
    }
}
