//! Log-probabilities in the shapes of Ollama, Chat Completions and Completions.

use serde_json::{Map, Value, json};

use crate::TokenLogprob;

/// JSON has no infinity; OpenAI writes this instead.
const MINUS_INFINITY: f64 = -9999.0;

/// `[{"token", "logprob", "bytes", "top_logprobs"}]`
pub(super) fn list(logprobs: &[TokenLogprob]) -> Value {
    let entry = |logprob: &TokenLogprob| {
        let mut entry = single(logprob);
        entry["top_logprobs"] = logprob.top.iter().map(single).collect();
        entry
    };
    logprobs.iter().map(entry).collect()
}

/// The `logprobs` object of Chat Completions; null without any.
pub(super) fn chat(logprobs: &[TokenLogprob]) -> Value {
    if logprobs.is_empty() {
        return Value::Null;
    }
    json!({ "content": list(logprobs), "refusal": null })
}

/// The `logprobs` object of Completions. `offset` is the number of characters before these tokens.
pub(super) fn legacy(logprobs: &[TokenLogprob], offset: &mut usize) -> Value {
    if logprobs.is_empty() {
        return Value::Null;
    }
    let mut offsets = Vec::new();
    for logprob in logprobs {
        offsets.push(*offset);
        *offset += logprob.token.chars().count();
    }
    let alternatives = |logprob: &TokenLogprob| -> Map<String, Value> {
        logprob.top.iter().map(|top| (top.token.clone(), number(top.logprob))).collect()
    };
    json!({
        "tokens": logprobs.iter().map(|l| l.token.as_str()).collect::<Vec<_>>(),
        "token_logprobs": logprobs.iter().map(|l| number(l.logprob)).collect::<Vec<_>>(),
        "top_logprobs": logprobs.iter().map(alternatives).collect::<Vec<_>>(),
        "text_offset": offsets,
    })
}

fn single(logprob: &TokenLogprob) -> Value {
    json!({
        "token": logprob.token,
        "logprob": number(logprob.logprob),
        "bytes": logprob.bytes,
    })
}

/// The shortest decimal that round-trips the f32, instead of all digits of the widened f64.
fn number(logprob: f32) -> Value {
    let shortest = logprob.to_string().parse().unwrap_or(f64::from(logprob));
    Value::from(if logprob.is_finite() { shortest } else { MINUS_INFINITY })
}
