//! What clients may take.

use std::time::Duration;

/// What connections may take of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time; more wait until one ends.
    pub connections: usize,
    /// Longest time from the moment a connection may send a request until its head is complete. Connections that are
    /// kept alive and say nothing end after it, too.
    pub head: Duration,
    /// Longest time in which a client takes not a single byte of an answer. Slow downloads go on as long as they move.
    pub stalled: Duration,
    /// How long answers may take to finish once an end was requested.
    pub drain: Duration,
}

impl Default for Limits {
    /// With a socket and a file each, the connections take half the descriptors a process usually has.
    fn default() -> Self {
        Self {
            connections: 256,
            head: Duration::from_secs(15),
            stalled: Duration::from_secs(120),
            drain: Duration::from_secs(5),
        }
    }
}

/// What one request to an API may take.
#[derive(Debug, Clone, Copy)]
pub struct ApiLimits {
    /// Bytes of a request's body, uncompressed.
    pub body: u64,
    /// Bytes of a blob that is uploaded.
    pub upload: u64,
    /// Bytes of the prompt's text.
    pub prompt: u64,
    /// Images and audio clips.
    pub media: usize,
    /// Bytes of one image or audio clip.
    pub media_bytes: u64,
    /// Replies to one request.
    pub choices: u32,
    /// Requests that wait for their first token; more are refused.
    pub queue: usize,
    /// Longest pause within a request's body.
    pub silence: Duration,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            body: 128 << 20,
            upload: 1 << 40,
            prompt: 16 << 20,
            media: 64,
            media_bytes: 32 << 20,
            choices: 64,
            queue: 512,
            silence: Duration::from_secs(30),
        }
    }
}
