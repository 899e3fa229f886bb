//! API keys.

use std::{fs, path::Path, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use base64::Engine as _;
use rullama_api::ApiError;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::{
    ServerError,
    api::{dialect_of, refuse},
    refusal::Refusal,
};

/// Keys shorter than this can be guessed.
const SHORTEST: usize = 16;

/// The keys that open a server, as hashes: comparing them takes the same time whatever was sent.
#[derive(Clone, Default)]
pub struct ApiKeys(Vec<[u8; 32]>);

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiKeys({})", self.0.len())
    }
}

impl ApiKeys {
    /// Adds a key.
    ///
    /// # Errors
    /// If it is short enough to be guessed, or cannot be sent in a header.
    pub fn add(&mut self, key: &str) -> Result<(), ServerError> {
        let key = key.trim();
        if key.len() < SHORTEST || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ServerError::BadKey { shortest: SHORTEST });
        }
        self.0.push(hash(key.as_bytes()));
        Ok(())
    }

    /// Adds the keys of a file: one in a line; empty lines and those that begin with `#` are skipped.
    ///
    /// # Errors
    /// If the file cannot be read, has no key, or one that is too short.
    pub fn add_file(&mut self, path: &Path) -> Result<(), ServerError> {
        let unreadable = |source| ServerError::KeyFile { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let lines = text.lines().map(str::trim);
        let before = self.0.len();
        for key in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            self.add(key)?;
        }
        if self.0.len() == before {
            return Err(ServerError::NoKeys { path: path.to_owned() });
        }
        Ok(())
    }

    /// Whether there is none, so that every request is let in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is one of the keys.
    fn knows(&self, key: &[u8]) -> bool {
        let sent = hash(key);
        let compare = |found: Choice, key: &[u8; 32]| found | key.ct_eq(&sent);
        self.0.iter().fold(Choice::from(0), compare).into()
    }

    /// Whether a request carries one of the keys: as a bearer token, in `x-api-key`, or as the password of a browser's dialog.
    fn admits(&self, headers: &HeaderMap) -> bool {
        if self.is_empty() {
            return true;
        }
        let own = headers.get("x-api-key").is_some_and(|key| self.knows(key.as_bytes()));
        let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        own || authorization.is_some_and(|value| match split(value) {
            (b"bearer", key) => self.knows(key),
            (b"basic", encoded) => self.knows(&password(encoded).unwrap_or_default()),
            _ => false,
        })
    }
}

fn hash(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// The scheme of an `Authorization` header, where it is a known one, and the rest.
fn split(value: &[u8]) -> (&'static [u8], &[u8]) {
    for scheme in [&b"bearer"[..], b"basic"] {
        if let Some((first, rest)) = value.split_at_checked(scheme.len())
            && first.eq_ignore_ascii_case(scheme)
            && let Some(rest) = rest.strip_prefix(b" ")
        {
            return (scheme, rest.trim_ascii());
        }
    }
    (b"", value)
}

/// The password of `user:password` in base64.
fn password(encoded: &[u8]) -> Option<Vec<u8>> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}

/// Lets requests pass that carry a key, and those for what is public: the app's own files and `/health`.
pub(crate) async fn check_key(
    State(keys): State<Arc<ApiKeys>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let is_file = path.starts_with("/rullama/");
    let is_public = matches!(path, "/health" | "/v1/health")
        || (dialect_of(path).is_none() && !is_file)
        || request.method() == axum::http::Method::OPTIONS;
    if is_public || keys.admits(request.headers()) {
        return next.run(request).await;
    }
    if is_file {
        let message = "this server needs an API key; use it as the password";
        let refusal = Refusal::new(axum::http::StatusCode::UNAUTHORIZED, "unauthorized", message);
        let dialog = HeaderValue::from_static("Basic realm=\"rullama\"");
        return refusal.with(header::WWW_AUTHENTICATE, dialog).into_response();
    }
    refuse(&request, &ApiError::Unauthorized)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    #[test]
    fn ways_to_send_a_key() {
        let mut keys = ApiKeys::default();
        assert!(keys.admits(&HeaderMap::new()), "without keys everybody is let in");
        keys.add("another-key-of-some-length").unwrap();
        keys.add(KEY).unwrap();
        let basic = |text: &str| {
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
        };
        let check = |name: &'static str, value: &str, fine: bool| {
            let headers = HeaderMap::from_iter([(
                header::HeaderName::from_static(name),
                value.parse().unwrap(),
            )]);
            assert_eq!(keys.admits(&headers), fine, "{name}: {value}");
        };
        check("x-api-key", KEY, true);
        check("authorization", &format!("Bearer {KEY}"), true);
        check("authorization", &format!("bearer   {KEY}"), true);
        check("authorization", &basic(&format!("me:{KEY}")), true);
        check("authorization", &basic(KEY), false);
        check("authorization", KEY, false);
        check("authorization", &format!("Bearer{KEY}"), false);
        check("authorization", "Bearer ", false);
        check("authorization", "Basic ???", false);
        check("x-api-key", &KEY[..18], false);
        check("x-api-key", &format!("{KEY}0"), false);
        check("x-api-key", "", false);
        assert!(!keys.admits(&HeaderMap::new()));
        assert!(!format!("{keys:?}").contains("sk-"));
    }

    #[test]
    fn files_of_keys() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut keys = ApiKeys::default();
        assert!(matches!(keys.add_file(file.path()), Err(ServerError::NoKeys { .. })));
        fs::write(file.path(), format!("# mine\n\n  {KEY}\r\nanother-key-of-some-length\n"))
            .unwrap();
        keys.add_file(file.path()).unwrap();
        assert_eq!(keys.0.len(), 2);
        assert!(keys.knows(KEY.as_bytes()));
        fs::write(file.path(), "short\n").unwrap();
        assert!(matches!(keys.add_file(file.path()), Err(ServerError::BadKey { .. })));
        assert!(matches!(
            keys.add_file("/no/such/file".as_ref()),
            Err(ServerError::KeyFile { .. })
        ));
    }
}
