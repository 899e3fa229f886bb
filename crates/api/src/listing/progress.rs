//! Lines of progress while models are pulled or created.

use serde::Serialize;

/// One line of `/api/pull` or `/api/create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// What is being done; the last line says `success`.
    pub status: String,
    /// The layer it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The layer's bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// How many of them are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
}

impl Progress {
    /// A line without figures.
    pub fn status(status: impl Into<String>) -> Self {
        Self { status: status.into(), ..Self::default() }
    }

    /// The last line.
    pub fn success() -> Self {
        Self::status("success")
    }

    /// A layer on its way; the line shows the first 12 digits of its digest `sha256:HEX`.
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

    /// The line, with its end.
    pub fn to_line(&self) -> Vec<u8> {
        // Texts and numbers always become JSON.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
