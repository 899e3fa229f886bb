//! Registries, credentials, retries and timeouts.

use std::{fmt, time::Duration};

use rullama_store::ModelName;
use ureq::http::Uri;

use crate::PullError;

/// Options of pulling. Nothing is read from the environment: the caller passes the values.
#[derive(Debug, Clone)]
pub struct PullOptions {
    /// Allows plain http. Hosts without a scheme are then contacted over http, as in Ollama.
    pub insecure: bool,
    /// Replacement addresses for hosts in names, such as a mirror: `(host, "https://mirror.example")`.
    pub endpoints: Vec<(String, String)>,
    /// Access tokens of registries, by host in the name. Each is sent to that host only.
    pub tokens: Vec<(String, Secret)>,
    /// The variable `HF_ENDPOINT`: the server of `hf.co` names.
    pub hf_endpoint: Option<String>,
    /// The variable `HF_TOKEN`: sent to that endpoint only.
    pub hf_token: Option<Secret>,
    /// Address of an HTTP proxy.
    pub proxy: Option<String>,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Attempts per request or part without progress.
    pub attempts: u32,
    /// Delay before the second attempt; doubles with each further one.
    pub backoff: Duration,
    /// Timeout of a connection that sends nothing.
    pub stall: Duration,
    /// The interval at which the state of a download is recorded.
    pub checkpoint: Duration,
    /// The size of a blob's parts.
    pub part_size: PartSize,
    /// The number of parts downloaded in parallel.
    pub parallel: usize,
}

/// Limits of a part's length in bytes. Files are split into 16 parts within these limits, as in Ollama.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartSize {
    /// Minimum length of a part, if a file has several.
    pub min: u64,
    /// Maximum length of a part.
    pub max: u64,
}

/// A string that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Default for PullOptions {
    fn default() -> Self {
        Self {
            insecure: false,
            endpoints: Vec::new(),
            tokens: Vec::new(),
            hf_endpoint: None,
            hf_token: None,
            proxy: None,
            user_agent: concat!("rullama/", env!("CARGO_PKG_VERSION")).into(),
            attempts: 6,
            backoff: Duration::from_secs(1),
            stall: Duration::from_secs(30),
            checkpoint: Duration::from_secs(2),
            part_size: PartSize { min: 100_000_000, max: 1_000_000_000 },
            parallel: 16,
        }
    }
}

impl PullOptions {
    /// The address of the registry that `name` is pulled from.
    pub(crate) fn registry(&self, name: &ModelName) -> Result<Uri, PullError> {
        if is_hugging_face(name) {
            return self.hugging_face();
        }
        let host = name.host();
        let same = |other: &str| other.eq_ignore_ascii_case(host);
        if let Some((_, address)) = self.endpoints.iter().find(|(from, _)| same(from)) {
            return self.address(address);
        }
        let scheme = match name.scheme() {
            Some(scheme) => scheme.to_ascii_lowercase(),
            None if self.insecure => "http".into(),
            None => "https".into(),
        };
        match scheme.as_str() {
            "https" => {}
            "http" if self.insecure => {}
            "http" => return Err(PullError::Insecure { name: name.to_string() }),
            _ => return Err(PullError::UnknownScheme { scheme }),
        }
        self.address(&format!("{scheme}://{host}"))
    }

    /// The address of Hugging Face.
    pub(crate) fn hugging_face(&self) -> Result<Uri, PullError> {
        let given = self.hf_endpoint.as_deref().map(str::trim).filter(|text| !text.is_empty());
        self.address(given.unwrap_or("https://huggingface.co"))
    }

    /// The token for the host in `name`.
    pub(crate) fn token(&self, name: &ModelName) -> Option<&Secret> {
        let same = |host: &str| host.eq_ignore_ascii_case(name.host());
        self.tokens.iter().find(|(host, _)| same(host)).map(|(_, token)| token)
    }

    fn address(&self, text: &str) -> Result<Uri, PullError> {
        let trimmed = text.trim_end_matches('/');
        let uri = rullama_source::web_address(trimmed)
            .filter(|uri| uri.query().is_none() && !uri.authority().is_some_and(has_login))
            .ok_or_else(|| PullError::BadAddress {
                // Without the credentials it may contain.
                address: trimmed.rsplit('@').next().unwrap_or_default().into(),
            })?;
        if uri.scheme_str() == Some("http") && !self.insecure {
            return Err(PullError::Insecure { name: trimmed.into() });
        }
        Ok(uri)
    }
}

fn has_login(authority: &ureq::http::uri::Authority) -> bool {
    authority.as_str().contains('@')
}

/// Whether `name` is a repository on Hugging Face.
pub(crate) fn is_hugging_face(name: &ModelName) -> bool {
    ["hf.co", "huggingface.co"].iter().any(|host| name.host().eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::{PullOptions, Secret};
    use crate::PullError;

    fn address(options: &PullOptions, name: &str) -> Result<String, PullError> {
        options.registry(&name.parse().unwrap()).map(|uri| uri.to_string())
    }

    #[test]
    fn plain_http_must_be_allowed() {
        let mut options = PullOptions::default();
        assert_eq!(address(&options, "host:5000/a/b").unwrap(), "https://host:5000/");
        for name in ["http://host/a/b", "HTTP://host/a/b"] {
            assert!(matches!(address(&options, name), Err(PullError::Insecure { .. })), "{name}");
        }
        let ftp = address(&options, "ftp://host/a/b");
        assert!(matches!(ftp, Err(PullError::UnknownScheme { .. })));
        options.hf_endpoint = Some("http://mirror".into());
        assert!(matches!(address(&options, "hf.co/a/b"), Err(PullError::Insecure { .. })));

        options.insecure = true;
        assert_eq!(address(&options, "http://host/a/b").unwrap(), "http://host/");
        assert_eq!(address(&options, "host/a/b").unwrap(), "http://host/");
        assert_eq!(address(&options, "https://host/a/b").unwrap(), "https://host/");
        assert_eq!(address(&options, "hf.co/a/b").unwrap(), "http://mirror/");
    }

    #[test]
    fn hosts_can_be_replaced() {
        let mut options = PullOptions::default();
        options.endpoints.push(("Host".into(), "https://mirror:8443/prefix/".into()));
        assert_eq!(address(&options, "host/a/b").unwrap(), "https://mirror:8443/prefix");
        for bad in ["", "mirror", "file:///x", "https://user:secret@mirror", "https://mirror/?x"] {
            options.endpoints[0].1 = bad.into();
            assert!(matches!(address(&options, "host/a/b"), Err(PullError::BadAddress { .. })));
        }
        for unset in [None, Some(String::new()), Some("  ".into())] {
            options.hf_endpoint = unset;
            assert_eq!(address(&options, "HF.co/a/b").unwrap(), "https://huggingface.co/");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let options = PullOptions { hf_token: Some(Secret::new("hf_abc")), ..Default::default() };
        assert!(!format!("{options:?}").contains("hf_abc"));
    }
}
