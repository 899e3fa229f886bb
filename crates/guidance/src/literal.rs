//! Pieces of Lark text.

/// A text as a Lark string, whose escapes are those of JSON.
pub(crate) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A regular expression as a Lark literal; its slashes are escaped already.
pub(crate) fn regex(pattern: &str) -> String {
    format!("/{pattern}/")
}

/// A pattern that matches exactly this text.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '"') || !c.is_ascii() {
            out.push(c);
        } else {
            out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
        }
    }
    out
}
