//! One server during one pull: requests, redirects and credentials.

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
/// How much of an error's text is shown.
const MAX_MESSAGE: u64 = 4096;
const MAX_TOKEN: u64 = 64 << 10;
/// How often silence is forgiven when nothing comes in between.
pub(crate) const MAX_STALLS: u32 = 10;

pub(crate) type Response = ureq::http::Response<Body>;

/// Why one attempt failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Trying again would not help.
    Final(PullError),
    /// The connection broke, or the server is busy.
    Again(io::Error),
    /// Nothing came for too long.
    Stalled,
    /// The address that a redirect led to is no longer valid.
    Expired(u16),
    /// The server sends whole files only.
    RangeIgnored,
    /// The download was stopped.
    Stopped,
}

impl From<PullError> for Failure {
    fn from(error: PullError) -> Self {
        Self::Final(error)
    }
}

/// Where a request ended.
pub(crate) enum Reached {
    Response(Response),
    /// A redirect leads to another host; these are its headers.
    Elsewhere(Uri, HeaderMap),
}

/// A request for bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) head: bool,
    pub(crate) accept: Option<&'a str>,
    /// First and last byte.
    pub(crate) range: Option<(u64, u64)>,
    /// Stops at the first redirect to another host.
    pub(crate) stop_elsewhere: bool,
    /// What is requested, for messages.
    pub(crate) what: &'a str,
}

/// A small answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Remote {
    agent: Agent,
    base: Uri,
    /// What authorises requests right away.
    bearer: Option<Secret>,
    /// What authorises the exchange for a token.
    exchange: Option<Secret>,
    /// The token that came from an exchange.
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
            // Followed here: credentials must not travel to other hosts.
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

    /// For messages.
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

    /// Sends one request and follows redirects. A 401 is answered once with a token.
    pub(crate) fn send(&self, from: &Uri, ask: Ask<'_>) -> Result<Reached, Failure> {
        let mut place = from.clone();
        let mut exchanged = false;
        let mut redirects = 0;
        loop {
            let response = self.send_once(&place, ask)?;
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
                        .ok_or_else(|| {
                            self.bad_answer(ask.what, "a redirect that leads nowhere")
                        })?;
                    if ask.stop_elsewhere && !self.is_same(&next) {
                        return Ok(Reached::Elsewhere(next, response.headers().clone()));
                    }
                    place = next;
                }
                status @ (408 | 429 | 500..=599) => {
                    return Err(Failure::Again(io::Error::other(format!("status {status}"))));
                }
                _ => return Ok(Reached::Response(response)),
            }
        }
    }

    fn send_once(&self, place: &Uri, ask: Ask<'_>) -> Result<Response, Failure> {
        let mut request = if ask.head { self.agent.head(place) } else { self.agent.get(place) }
            .header(header::ACCEPT_ENCODING, "identity");
        if let Some(accept) = ask.accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some((first, last)) = ask.range {
            request = request.header(header::RANGE, format!("bytes={first}-{last}"));
        }
        if self.is_same(place) {
            let token = lock(&self.token).clone();
            if let Some(token) = token.as_deref().or(self.bearer.as_ref().map(Secret::reveal)) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
        }
        request.call().map_err(|error| self.failure(ask.what, error))
    }

    /// Exchanges the user's token, or nothing, for the one that a 401 asks for.
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
        // A token sent to a realm of the server's choice would be a token given away.
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
                return Err(Failure::Again(io::Error::other(format!("status {status}"))));
            }
            _ => return Err(denied(NO_ACCESS).into()),
        }
        let body = self.read_all(response, MAX_TOKEN, "a token")?;
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let token = answer["token"].as_str().or(answer["access_token"].as_str());
        let visible = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic());
        let token = token
            .filter(|token| !token.is_empty())
            .filter(visible)
            .ok_or_else(|| self.bad_answer("a token", "no token"))?;
        *lock(&self.token) = Some(token.to_owned());
        Ok(())
    }

    /// The answer to a request for something small, tried several times. Statuses are the caller's to judge.
    pub(crate) fn fetch(&self, from: &Uri, ask: Ask<'_>, max: u64) -> Result<Answer, PullError> {
        let mut pause = self.backoff;
        let (mut attempts, mut stalls) = (0, 0);
        loop {
            let failure = match self.fetch_once(from, ask, max) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match failure {
                Failure::Stalled if stalls < 2 => stalls += 1,
                Failure::Again(_) if attempts + 1 < self.attempts => {
                    attempts += 1;
                    std::thread::sleep(pause);
                    pause = pause.saturating_mul(2);
                }
                other => return Err(self.explain(other, ask.what, attempts + 1)),
            }
        }
    }

    fn fetch_once(&self, from: &Uri, ask: Ask<'_>, max: u64) -> Result<Answer, Failure> {
        let response = match self.send(from, ask)? {
            Reached::Response(response) => response,
            Reached::Elsewhere(_, headers) => {
                return Ok(Answer { status: 302, headers, body: Vec::new() });
            }
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if status == 401 {
            return Err(PullError::Unauthorized { host: self.host(), advice: NO_ACCESS }.into());
        }
        let body = match (ask.head, status) {
            (true, _) => Vec::new(),
            (false, 200..=299) => self.read_all(response, max, ask.what)?,
            (false, _) => {
                let mut message = Vec::new();
                let mut reader = response.into_body().into_reader().take(MAX_MESSAGE);
                // An error's text is a courtesy: as much of it as comes.
                let _ = reader.read_to_end(&mut message);
                message
            }
        };
        Ok(Answer { status, headers, body })
    }

    fn read_all(&self, response: Response, max: u64, what: &str) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let mut reader = response.into_body().into_reader().take(max + 1);
        reader.read_to_end(&mut body).map_err(|error| match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => Failure::Stalled,
            other => Failure::Again(other.into_io()),
        })?;
        if body.len() as u64 > max {
            return Err(self.bad_answer(what, &format!("more than {max} bytes")).into());
        }
        Ok(body)
    }

    /// The error for a status that is not the expected one.
    pub(crate) fn refused(&self, what: &str, answer: &Answer) -> PullError {
        let (host, what, status) = (self.host(), what.to_owned(), answer.status);
        PullError::Refused { host, what, status, message: message(&answer.body) }
    }

    pub(crate) fn bad_answer(&self, what: &str, problem: &str) -> PullError {
        PullError::BadAnswer { host: self.host(), what: what.into(), problem: problem.into() }
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
            Failure::Again(source) => {
                PullError::Connection { host, what: what.into(), attempts, source: source.into() }
            }
        }
    }

    /// What an error of the HTTP library means.
    fn failure(&self, what: &str, error: ureq::Error) -> Failure {
        match error {
            ureq::Error::Timeout(_) => Failure::Stalled,
            // Certificates that do not verify end here.
            ureq::Error::Io(e) if e.kind() == ErrorKind::InvalidData => {
                self.bad_answer(what, &e.to_string()).into()
            }
            ureq::Error::Io(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                Failure::Again(error.into_io())
            }
            other => self.bad_answer(what, &other.to_string()).into(),
        }
    }
}

const NO_ACCESS: &str = "check the name, or give an access token";

/// Scheme, host and port are equal.
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

/// Percent-encodes everything that means something in an address, except for slashes.
pub(crate) fn encode(text: &str) -> String {
    const KEEP: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~')
        .remove(b'/');
    percent_encoding::utf8_percent_encode(text, KEEP).to_string()
}

/// What an error's body says: a text in JSON of several shapes, or the first line of plain text.
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

/// A mutex that a panic elsewhere does not make unusable: what it guards is replaced as a whole.
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
    fn texts_of_errors() {
        assert_eq!(message(br#"{"error":"no such tag"}"#), "no such tag");
        assert_eq!(message(br#"{"errors":[{"code":"X","message":"denied"}]}"#), "denied");
        assert_eq!(message(b"plain\x1b[0m text\nsecond"), "plain[0m text");
        assert_eq!(message(b"<html>"), "");
        assert_eq!(message(b""), "");
        assert_eq!(encode("a b/c?d&e=f#g%"), "a%20b/c%3Fd%26e%3Df%23g%25");
    }
}
