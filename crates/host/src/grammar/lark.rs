//! Pieces of llguidance's Lark notation.

use rullama_api::ApiError;

/// Longer grammars, and those with more rules or deeper groups, take llguidance too much time or too much of the stack.
const MAX_BYTES: usize = 64 << 10;
const MAX_LINES: usize = 1024;
const DEEPEST: usize = 64;

/// A grammar of a request, if it is of a reasonable size.
pub(super) fn checked(grammar: &str) -> Result<&str, ApiError> {
    let mut depth = 0usize;
    let mut deepest = 0;
    for byte in grammar.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if grammar.len() > MAX_BYTES || grammar.lines().count() > MAX_LINES || deepest > DEEPEST {
        let message = "this grammar is not supported: it may have at most 64 kB, 1024 lines and 64 nested groups";
        return Err(ApiError::Invalid { message: message.to_owned() });
    }
    Ok(grammar)
}

/// A text as a literal: JSON's notation, in which the delete character must be escaped, too.
pub(super) fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A character inside a regular expression, whatever it would mean there.
pub(super) fn escaped(c: char) -> String {
    format!("\\x{{{:x}}}", u32::from(c))
}

/// One of these texts.
pub(super) fn choice(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    format!("start: {}\n", texts.join(" | "))
}
