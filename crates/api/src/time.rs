//! Points in time: RFC 3339 for Ollama and Anthropic, Unix seconds for OpenAI.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};

/// A point in time from 1970 to the end of 9999; later ones are clamped to the last one RFC 3339 can write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(Duration);

/// 9999-12-31T23:59:59Z
const LAST: Duration = Duration::from_secs(253_402_300_799);

impl Timestamp {
    /// The end of 9999: the expiry of a model that is never unloaded.
    pub const FAR_FUTURE: Self = Self(LAST);

    /// The time `since_epoch` after 1970.
    pub fn from_unix(since_epoch: Duration) -> Self {
        Self(since_epoch.min(LAST))
    }

    /// Whole seconds since 1970.
    pub fn unix_seconds(self) -> u64 {
        self.0.as_secs()
    }

    /// This time plus `duration`.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self::from_unix(self.0.saturating_add(duration))
    }

    /// Without fractions of a second.
    #[must_use]
    pub fn whole_seconds(self) -> Self {
        Self(Duration::from_secs(self.0.as_secs()))
    }
}

/// A time of the file system; times before 1970 become 1970.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self::from_unix(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }
}

/// RFC 3339 in UTC, with nanoseconds unless they are zero.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339(SystemTime::UNIX_EPOCH + self.0).fmt(f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_as_rfc_3339() {
        let at = |seconds, nanos| Timestamp::from_unix(Duration::new(seconds, nanos)).to_string();
        assert_eq!(at(1_777_622_400, 0), "2026-05-01T08:00:00Z");
        assert_eq!(at(1_777_622_400, 500_000_000), "2026-05-01T08:00:00.500000000Z");
        assert_eq!(at(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(at(u64::MAX, 0), "9999-12-31T23:59:59Z");
        assert_eq!(Timestamp::FAR_FUTURE.after(Duration::MAX), Timestamp::FAR_FUTURE);
    }
}
