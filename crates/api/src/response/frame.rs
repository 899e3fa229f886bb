//! The two framings of JSON streams.

use serde_json::Value;

/// Content type of Ollama's streams: one JSON value per line.
pub const NDJSON: &str = "application/x-ndjson";
/// Content type of the other streams: server-sent events.
pub const SSE: &str = "text/event-stream";

/// A line of JSON.
pub(super) fn line(out: &mut Vec<u8>, value: &Value) {
    out.extend_from_slice(value.to_string().as_bytes());
    out.push(b'\n');
}

/// A server-sent event without a name.
pub(super) fn data(out: &mut Vec<u8>, value: &Value) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(value.to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// A server-sent event with a name.
pub(super) fn named(out: &mut Vec<u8>, name: &str, value: &Value) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    data(out, value);
}

/// The end of OpenAI's streams.
pub(super) fn done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: [DONE]\n\n");
}

/// A comment, which clients of server-sent events skip.
pub(super) fn comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}
