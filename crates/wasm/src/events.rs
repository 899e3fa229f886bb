//! Events of a generation, as JSON.

use rullama_runtime::{
    generate::{Done, Event, Finish},
    sampling::logprobs::{Logprobs, TokenLogprob},
};
use rullama_tokenizer::{Render, Tokenizer};
use serde_json::{Value, json};

/// An event; the last one, `Done`, is returned as the error, because the session adds timings to it.
pub(crate) fn event(event: Event, tokenizer: &Tokenizer) -> Result<Value, Done> {
    Ok(match event {
        Event::Text(text) => json!({ "type": "text", "text": text }),
        Event::Thinking(text) => json!({ "type": "thinking", "text": text }),
        Event::ToolCall { index, name, arguments } => {
            let call = json!({ "name": name, "arguments": arguments });
            json!({ "type": "tool_call", "index": index, "call": call })
        }
        Event::BadCall { raw } => json!({ "type": "bad_call", "raw": raw }),
        Event::Logprobs(Logprobs { chosen, top }) => json!({
            "type": "logprobs",
            "token": logprob(chosen, tokenizer),
            "top": top.into_iter().map(|each| logprob(each, tokenizer)).collect::<Vec<_>>(),
        }),
        Event::Done(done) => return Err(done),
    })
}

fn logprob(token: TokenLogprob, tokenizer: &Tokenizer) -> Value {
    let bytes = tokenizer.piece(token.id, Render::All);
    json!({
        "id": token.id,
        "token": String::from_utf8_lossy(&bytes),
        "bytes": &*bytes,
        "logprob": token.logprob,
    })
}

/// Times of a reply, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) start: f64,
    /// When the first token was generated.
    pub(crate) first: Option<f64>,
    pub(crate) end: f64,
}

/// The last event.
pub(crate) fn done(done: &Done, times: Times, seed: u32, (used, context): (usize, usize)) -> Value {
    let rate = |tokens: usize, ms: f64| if ms > 0.0 { tokens as f64 * 1000.0 / ms } else { 0.0 };
    let first = times.first.unwrap_or(times.end);
    let read = done.prompt_tokens.saturating_sub(done.cached_tokens);
    let usage = json!({
        "promptTokens": done.prompt_tokens,
        "cachedTokens": done.cached_tokens,
        "answerTokens": done.answer_tokens,
        "timeToFirstToken": first - times.start,
        "prefillTokensPerSecond": rate(read, first - times.start),
        "decodeTokensPerSecond": rate(done.answer_tokens.saturating_sub(1), times.end - first),
        "seed": seed,
        "contextUsed": used,
        "context": context,
    });
    let finish = match done.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Context => "context",
        Finish::Cancelled => "cancelled",
    };
    json!({ "type": "done", "finish": finish, "usage": usage })
}
