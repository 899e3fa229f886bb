//! The server of one pull: requests, redirects and credentials.

use std::{
    io::{self, ErrorKind, Read},
    sync::{Arc, Mutex},
    time::Duration,
};

use rullama_store::ModelName;
use ureq::{
    Agent, Body,
    http::{HeaderMap, Uri, header},
};

use crate::{
    PullError, PullOptions, Secret,
    headers::{Challenge, text},
    options::is_hugging_face,
};

const MAX_REDIRECTS: usize = 10;
/// Maximum length of a shown error message in bytes.
const MAX_MESSAGE: u64 = 4096;
const MAX_TOKEN: u64 = 64 << 10;
/// Consecutive timeouts that are tolerated.
pub(crate) const MAX_STALLS: u32 = 10;

pub(crate) type Response = ureq::http::Response<Body>;

/// Why one attempt failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A retry would not help.
    Final(PullError),
    /// The connection broke, or the server is busy.
    Retry(io::Error),
    /// A timeout.
    Stalled,
    /// The redirect target is no longer valid.
    Expired(u16),
    /// The server does not support ranges.
    RangeIgnored,
    /// The download was stopped.
    Stopped,
}

impl From<PullError> for Failure {
    fn from(error: PullError) -> Self {
        Self::Final(error)
    }
}

/// The result of a request.
pub(crate) enum Reached {
    Response(Response),
    /// A redirect to another host, with the headers of the redirect.
    OtherHost(Uri, HeaderMap),
}

/// Parameters of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestSpec<'a> {
    pub(crate) head: bool,
    pub(crate) accept: Option<&'a str>,
    /// First and last byte.
    pub(crate) range: Option<(u64, u64)>,
    /// Whether to stop at the first redirect to another host.
    pub(crate) stop_at_other_host: bool,
    /// What is requested, for messages.
    pub(crate) what: &'a str,
}

/// A small response, read completely.
#[derive(Debug)]
pub(crate) struct FetchedResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Remote {
    agent: Agent,
    base: Uri,
    /// Authorises requests directly.
    bearer: Option<Secret>,
    /// Authorises the exchange for a token.
    exchange: Option<Secret>,
    /// The token from an exchange.
    token: Mutex<Option<String>>,
    insecure: bool,
    attempts: u32,
    backoff: Duration,
    pub(crate) stall: Duration,
}

impl Remote {
    /// The server that `name` is pulled from.
    pub(crate) fn new(options: &PullOptions, name: &ModelName) -> Result<Arc<Self>, PullError> {
        let base = options.registry(name)?;
        let proxy = match &options.proxy {
            Some(address) => Some(ureq::Proxy::new(address).map_err(|_| {
                let address = address.rsplit('@').next().unwrap_or_default().into();
                PullError::BadAddress { address }
            })?),
            None => None,
        };
        let agent = Agent::config_builder()
            .proxy(proxy)
            .http_status_as_error(false)
            // Redirects are followed here: credentials must not be sent to other hosts.
            .max_redirects(0)
            .user_agent(options.user_agent.as_str())
            .timeout_connect(Some(options.stall))
            .timeout_recv_response(Some(options.stall))
            .timeout_per_read(Some(options.stall))
            .timeout_per_write(Some(options.stall))
            .max_idle_connections_per_host(options.parallel)
            .build()
            .new_agent();
        let hugging_face = is_hugging_face(name);
        Ok(Arc::new(Self {
            agent,
            base,
            bearer: options.hf_token.clone().filter(|_| hugging_face),
            exchange: options.token(name).cloned().filter(|_| !hugging_face),
            token: Mutex::new(None),
            insecure: options.insecure,
            attempts: options.attempts.max(1),
            backoff: options.backoff,
            stall: options.stall,
        }))
    }

    /// The host, for messages.
    pub(crate) fn host(&self) -> String {
        self.base.authority().map(ToString::to_string).unwrap_or_default()
    }

    /// The address of `path`, which starts with a slash, on this server.
    pub(crate) fn at(&self, path: &str) -> Result<Uri, PullError> {
        let base = self.base.to_string();
        let address = format!("{}{path}", base.trim_end_matches('/'));
        address.parse().map_err(|_| PullError::BadAddress { address })
    }

    /// Whether credentials for this server may be sent to `uri`.
    pub(crate) fn is_same(&self, uri: &Uri) -> bool {
        same_origin(&self.base, uri)
    }

    /// Sends one request and follows redirects. After a 401 it retries once with a token.
    pub(crate) fn send(&self, from: &Uri, spec: RequestSpec<'_>) -> Result<Reached, Failure> {
        let mut place = from.clone();
        let mut exchanged = false;
        let mut redirects = 0;
        loop {
            let response = self.send_once(&place, spec)?;
            match response.status().as_u16() {
                401 if self.is_same(&place) && !exchanged => {
                    self.authenticate(&response)?;
                    exchanged = true;
                }
                301 | 302 | 303 | 307 | 308 => {
                    redirects += 1;
                    let location = text(response.headers(), header::LOCATION).unwrap_or_default();
                    let next = rullama_source::follow(&place, location)
                        .filter(|next| self.insecure || next.scheme_str() == Some("https"))
                        .filter(|_| redirects <= MAX_REDIRECTS)
                        .ok_or_else(|| self.bad_response(spec.what, "an invalid redirect"))?;
                    if spec.stop_at_other_host && !self.is_same(&next) {
                        return Ok(Reached::OtherHost(next, response.headers().clone()));
                    }
                    place = next;
                }
                status @ (408 | 429 | 500..=599) => {
                    return Err(Failure::Retry(io::Error::other(format!("status {status}"))));
                }
                _ => return Ok(Reached::Response(response)),
            }
        }
    }

    fn send_once(&self, place: &Uri, spec: RequestSpec<'_>) -> Result<Response, Failure> {
        let mut request = if spec.head { self.agent.head(place) } else { self.agent.get(place) }
            .header(header::ACCEPT_ENCODING, "identity");
        if let Some(accept) = spec.accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some((first, last)) = spec.range {
            request = request.header(header::RANGE, format!("bytes={first}-{last}"));
        }
        if self.is_same(place) {
            let token = lock(&self.token).clone();
            if let Some(token) = token.as_deref().or(self.bearer.as_ref().map(Secret::reveal)) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
        }
        request.call().map_err(|error| self.failure(spec.what, error))
    }

    /// Exchanges the user's token, if any, for the token that a 401 requires.
    fn authenticate(&self, response: &Response) -> Result<(), Failure> {
        let denied = |advice| PullError::Unauthorized { host: self.host(), advice };
        let challenge = text(response.headers(), header::WWW_AUTHENTICATE)
            .and_then(Challenge::parse)
            .ok_or_else(|| denied(NO_ACCESS))?;
        let mut realm = challenge.realm.clone();
        let mut separator = if realm.contains('?') { '&' } else { '?' };
        for (key, value) in [("service", &challenge.service), ("scope", &challenge.scope)] {
            if let Some(value) = value {
                realm.push_str(&format!("{separator}{key}={}", encode(value)));
                separator = '&';
            }
        }
        // Sending the token to a realm on another host would leak it.
        let realm = rullama_source::web_address(&realm)
            .filter(|uri| self.is_same(uri))
            .ok_or_else(|| denied("it wants credentials for another host"))?;
        let mut request = self.agent.get(&realm).header(header::ACCEPT_ENCODING, "identity");
        if let Some(secret) = &self.exchange {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", secret.reveal()));
        }
        let response = request.call().map_err(|error| self.failure("a token", error))?;
        let status = response.status().as_u16();
        match status {
            200 => {}
            408 | 429 | 500..=599 => {
                return Err(Failure::Retry(io::Error::other(format!("status {status}"))));
            }
            _ => return Err(denied(NO_ACCESS).into()),
        }
        let body = self.read_all(response, MAX_TOKEN, "a token")?;
        let token_response: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let token = token_response["token"].as_str().or(token_response["access_token"].as_str());
        let visible = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic());
        let token = token
            .filter(|token| !token.is_empty())
            .filter(visible)
            .ok_or_else(|| self.bad_response("a token", "no token"))?;
        *lock(&self.token) = Some(token.to_owned());
        Ok(())
    }

    /// Fetches a small file, with retries. The caller checks the status.
    pub(crate) fn fetch(
        &self,
        from: &Uri,
        spec: RequestSpec<'_>,
        max: u64,
    ) -> Result<FetchedResponse, PullError> {
        let mut pause = self.backoff;
        let (mut attempts, mut stalls) = (0, 0);
        loop {
            let failure = match self.fetch_once(from, spec, max) {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            match failure {
                Failure::Stalled if stalls < 2 => stalls += 1,
                Failure::Retry(_) if attempts + 1 < self.attempts => {
                    attempts += 1;
                    std::thread::sleep(pause);
                    pause = pause.saturating_mul(2);
                }
                other => return Err(self.explain(other, spec.what, attempts + 1)),
            }
        }
    }

    fn fetch_once(
        &self,
        from: &Uri,
        spec: RequestSpec<'_>,
        max: u64,
    ) -> Result<FetchedResponse, Failure> {
        let response = match self.send(from, spec)? {
            Reached::Response(response) => response,
            Reached::OtherHost(_, headers) => {
                return Ok(FetchedResponse { status: 302, headers, body: Vec::new() });
            }
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if status == 401 {
            return Err(PullError::Unauthorized { host: self.host(), advice: NO_ACCESS }.into());
        }
        let body = match (spec.head, status) {
            (true, _) => Vec::new(),
            (false, 200..=299) => self.read_all(response, max, spec.what)?,
            (false, _) => {
                let mut message = Vec::new();
                let mut reader = response.into_body().into_reader().take(MAX_MESSAGE);
                // The message is optional: as much of it as arrives.
                let _ = reader.read_to_end(&mut message);
                message
            }
        };
        Ok(FetchedResponse { status, headers, body })
    }

    fn read_all(&self, response: Response, max: u64, what: &str) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let mut reader = response.into_body().into_reader().take(max + 1);
        reader.read_to_end(&mut body).map_err(|error| match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => Failure::Stalled,
            other => Failure::Retry(other.into_io()),
        })?;
        if body.len() as u64 > max {
            return Err(self.bad_response(what, &format!("more than {max} bytes")).into());
        }
        Ok(body)
    }

    /// The error for an unexpected status.
    pub(crate) fn refused(&self, what: &str, response: &FetchedResponse) -> PullError {
        let (host, what, status) = (self.host(), what.to_owned(), response.status);
        PullError::Refused { host, what, status, message: message(&response.body) }
    }

    pub(crate) fn bad_response(&self, what: &str, problem: &str) -> PullError {
        PullError::BadResponse { host: self.host(), what: what.into(), problem: problem.into() }
    }

    /// The error to report after the last attempt.
    pub(crate) fn explain(&self, failure: Failure, what: &str, attempts: u32) -> PullError {
        let host = self.host();
        let refused = |status| PullError::Refused {
            host: host.clone(),
            what: what.into(),
            status,
            message: String::new(),
        };
        match failure {
            Failure::Final(error) => error,
            Failure::Stopped => PullError::Cancelled,
            Failure::Stalled => PullError::Stalled { host, timeout: self.stall },
            Failure::Expired(status) => refused(status),
            Failure::RangeIgnored => refused(200),
            Failure::Retry(source) => {
                PullError::Connection { host, what: what.into(), attempts, source: source.into() }
            }
        }
    }

    /// Classifies an error of the HTTP library.
    fn failure(&self, what: &str, error: ureq::Error) -> Failure {
        match error {
            ureq::Error::Timeout(_) => Failure::Stalled,
            // Invalid certificates end here.
            ureq::Error::Io(e) if e.kind() == ErrorKind::InvalidData => {
                self.bad_response(what, &e.to_string()).into()
            }
            ureq::Error::Io(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                Failure::Retry(error.into_io())
            }
            other => self.bad_response(what, &other.to_string()).into(),
        }
    }
}

const NO_ACCESS: &str = "check the name, or give an access token";

/// Whether scheme, host and port are equal.
fn same_origin(a: &Uri, b: &Uri) -> bool {
    let port = |uri: &Uri| {
        uri.port_u16().or(match uri.scheme_str() {
            Some("http") => Some(80),
            Some("https") => Some(443),
            _ => None,
        })
    };
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    a.scheme() == b.scheme() && host(a) == host(b) && port(a) == port(b)
}

/// Percent-encodes all characters with a meaning in URLs, except slashes.
pub(crate) fn encode(text: &str) -> String {
    const KEEP: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~')
        .remove(b'/');
    percent_encoding::utf8_percent_encode(text, KEEP).to_string()
}

/// The message in an error body: a string in JSON of several shapes, or the first line of plain text.
fn message(body: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let in_json = [&value["error"], &value["message"], &value["errors"][0]["message"]];
    let text = match in_json.iter().find_map(|value| value.as_str()) {
        Some(text) => text.to_owned(),
        None => String::from_utf8_lossy(body).lines().next().unwrap_or_default().to_owned(),
    };
    let page = text.trim_start().starts_with('<');
    let printable = text.chars().filter(|c| !c.is_control()).take(200);
    if page { String::new() } else { printable.collect() }
}

/// Locks a mutex even if poisoned: the guarded values are only replaced as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{encode, message, same_origin};

    #[test]
    fn origins() {
        let same = |a: &str, b: &str| same_origin(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(same("https://Host/a", "https://host:443/b?c"));
        for other in ["http://host/a", "https://host:444/a", "https://host.evil/a", "https://ost/a"]
        {
            assert!(!same("https://host/a", other), "{other}");
        }
    }

    #[test]
    fn error_messages() {
        assert_eq!(message(br#"{"error":"no such tag"}"#), "no such tag");
        assert_eq!(message(br#"{"errors":[{"code":"X","message":"denied"}]}"#), "denied");
        assert_eq!(message(b"plain\x1b[0m text\nsecond"), "plain[0m text");
        assert_eq!(message(b"<html>"), "");
        assert_eq!(message(b""), "");
        assert_eq!(encode("a b/c?d&e=f#g%"), "a%20b/c%3Fd%26e%3Df%23g%25");
    }
}
