//! Clock and random numbers, passed in by the caller.

use std::fmt::Write as _;
use std::time::Duration;

use crate::Timestamp;

/// The source of ids and times in a response.
///
/// ```
/// use std::time::Duration;
/// use rullama_api::{Environment, Timestamp};
///
/// struct Fixed(u64);
/// impl Environment for Fixed {
///     fn now(&self) -> Timestamp {
///         Timestamp::from_unix(Duration::from_secs(1_777_622_400))
///     }
///     fn random(&mut self) -> u64 {
///         self.0 += 1;
///         self.0
///     }
/// }
/// ```
pub trait Environment {
    /// The current time.
    fn now(&self) -> Timestamp;
    /// The next random number, 64 bits.
    fn random(&mut self) -> u64;
}

/// An id of 16 hexadecimal digits after a prefix, such as `chatcmpl-00000000deadbeef`.
pub fn hex_id(environment: &mut dyn Environment, prefix: &str) -> String {
    let mut id = prefix.to_owned();
    // Writing to a string cannot fail.
    _ = write!(id, "{:016x}", environment.random());
    id
}

/// The id of a tool call: `call_` and 8 characters of `[a-z0-9]`.
pub fn call_id(environment: &mut dyn Environment) -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut bits = environment.random();
    let mut id = String::from("call_");
    for _ in 0..8 {
        id.push(char::from(LETTERS[(bits % 36) as usize]));
        bits /= 36;
    }
    id
}

/// A duration in whole nanoseconds, Ollama's unit.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
