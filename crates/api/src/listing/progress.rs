//! Progress lines of pulling and creating models.

use serde::Serialize;

/// One line of `/api/pull` or `/api/create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// The status; `success` in the last line.
    pub status: String,
    /// The digest of the layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The layer's size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The bytes completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
}

impl Progress {
    /// A line with only a status.
    pub fn status(status: impl Into<String>) -> Self {
        Self { status: status.into(), ..Self::default() }
    }

    /// The last line.
    pub fn success() -> Self {
        Self::status("success")
    }

    /// Progress of a layer; the line shows the first 12 digits of its digest `sha256:HEX`.
    pub fn layer(digest: &str, completed: u64, total: u64) -> Self {
        let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
        let short: String = hex.chars().take(12).collect();
        Self {
            status: format!("pulling {short}"),
            digest: Some(digest.to_owned()),
            total: Some(total),
            completed: Some(completed),
        }
    }

    /// The line with its line break.
    pub fn to_line(&self) -> Vec<u8> {
        // Serialising strings and integers cannot fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
