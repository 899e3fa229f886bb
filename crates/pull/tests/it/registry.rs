//! A local mock registry, well-behaved or not.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rullama_store::Digest;
use serde_json::{Value, json};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
}

impl Request {
    pub(crate) fn authorization(&self) -> Option<&str> {
        self.headers.get("authorization").map(String::as_str)
    }

    fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = self.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    }
}

/// Deviations of the server. Counters hold the number of blob requests left to fail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// Blobs are at this address, with a signature that may expire.
    pub(crate) redirect: Option<String>,
    pub(crate) redirect_status: Option<u16>,
    pub(crate) refuse_head: bool,
    pub(crate) ignore_range: bool,
    pub(crate) wrong_range: bool,
    /// Connections are closed after this number of bytes.
    pub(crate) cut: (usize, usize),
    /// Connections stall after this number of bytes.
    pub(crate) stall: (usize, usize),
    pub(crate) busy: usize,
    pub(crate) corrupt: usize,
    /// A signature is valid for this number of requests.
    pub(crate) expires_after: Option<usize>,
    /// Everything except the token endpoint needs this token.
    pub(crate) token: Option<String>,
    /// The address of the token endpoint, if not this server.
    pub(crate) realm: Option<String>,
    /// The token that must be exchanged.
    pub(crate) user_token: Option<String>,
    /// Delay before each piece of a blob.
    pub(crate) pause: Duration,
    /// Paths with a fixed status.
    pub(crate) status: HashMap<String, (u16, String)>,
}

#[derive(Debug, Default)]
struct State {
    files: Mutex<HashMap<String, Vec<u8>>>,
    headers: Mutex<HashMap<String, Vec<(String, String)>>>,
    log: Mutex<Vec<Request>>,
    faults: Mutex<Faults>,
    signatures: Mutex<HashMap<String, usize>>,
    sent: AtomicU64,
}

#[derive(Debug, Clone)]
pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

/// Bytes per write of a body.
const PIECE: usize = 16 << 10;

impl Registry {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let registry = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let serving = registry.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let registry = serving.clone();
                thread::spawn(move || registry.serve(stream));
            }
        });
        registry
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A name on this registry.
    pub(crate) fn name(&self, rest: &str) -> rullama_store::ModelName {
        format!("{}/{rest}", self.address).parse().unwrap()
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.state.faults.lock().unwrap()
    }

    /// Returns the bytes of blobs sent and resets the counter.
    pub(crate) fn take_sent(&self) -> u64 {
        self.state.sent.swap(0, Ordering::SeqCst)
    }

    /// Bytes of blobs sent since the last [`take_sent`](Self::take_sent).
    pub(crate) fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// Waits until the server no longer sends to disconnected clients.
    pub(crate) fn settle(&self) {
        while {
            let before = self.sent();
            thread::sleep(Duration::from_millis(400));
            before != self.sent()
        } {}
    }

    /// The requests since the last call.
    pub(crate) fn take_log(&self) -> Vec<Request> {
        std::mem::take(&mut *self.state.log.lock().unwrap())
    }

    /// The requests since the last [`take_log`](Self::take_log).
    pub(crate) fn log(&self) -> Vec<Request> {
        self.state.log.lock().unwrap().clone()
    }

    pub(crate) fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.state.files.lock().unwrap().insert(path.into(), content.into());
    }

    /// Adds a header to the responses for `path`.
    pub(crate) fn put_header(&self, path: &str, name: &str, value: &str) {
        let mut headers = self.state.headers.lock().unwrap();
        headers.entry(path.into()).or_default().push((name.into(), value.into()));
    }

    /// Publishes a model with layers by kind; returns the bytes of its manifest.
    pub(crate) fn publish(&self, model: &str, tag: &str, layers: &[(&str, &[u8])]) -> Vec<u8> {
        let config = json!({ "model_format": "gguf", "model_family": "gemma4" }).to_string();
        let layer = |media_type: String, content: &[u8]| -> Value {
            let digest = Digest::of(content);
            self.put(&format!("/v2/{model}/blobs/{digest}"), content);
            json!({ "mediaType": media_type, "digest": digest.to_string(), "size": content.len() })
        };
        let config =
            layer("application/vnd.docker.container.image.v1+json".into(), config.as_bytes());
        let layers: Vec<Value> = layers
            .iter()
            .map(|(kind, content)| layer(format!("application/vnd.ollama.image.{kind}"), content))
            .collect();
        // Unusual spaces: the bytes must be preserved.
        let manifest = format!(
            "{{ \"schemaVersion\": 2,  \"config\": {config}, \"layers\": {} }}",
            Value::Array(layers)
        );
        self.put(&format!("/v2/{model}/manifests/{tag}"), manifest.as_bytes());
        manifest.into_bytes()
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read_request(&stream) else { return };
        self.state.log.lock().unwrap().push(request.clone());
        // Clients that disconnect are part of the tests.
        let _ = self.respond(&mut stream, &request);
    }

    fn respond(&self, stream: &mut TcpStream, request: &Request) -> std::io::Result<()> {
        let faults = self.faults().clone();
        let path = request.path.split('?').next().unwrap_or_default();
        if path == "/token" {
            let wanted = faults.user_token.as_ref().map(|token| format!("Bearer {token}"));
            if request.authorization() != wanted.as_deref() {
                return head(stream, 403, &[], 0);
            }
            let body = json!({ "token": faults.token }).to_string();
            head(stream, 200, &[], body.len())?;
            return stream.write_all(body.as_bytes());
        }
        if let Some((status, body)) = faults.status.get(path) {
            head(stream, *status, &[], body.len())?;
            return stream.write_all(body.as_bytes());
        }
        if let Some(token) = &faults.token
            && request.authorization() != Some(&format!("Bearer {token}"))
        {
            let realm = faults.realm.clone().unwrap_or_else(|| format!("{}/token", self.url()));
            let challenge =
                format!("Bearer realm=\"{realm}\",service=\"mock\",scope=\"repository:tiny:pull\"");
            return head(stream, 401, &[("WWW-Authenticate", challenge)], 0);
        }
        let Some(content) = self.state.files.lock().unwrap().get(path).cloned() else {
            return head(stream, 404, &[], 0);
        };
        let extra = self.state.headers.lock().unwrap().get(path).cloned().unwrap_or_default();
        if !path.contains("/blobs/") && !path.contains("/resolve/") {
            let extra: Vec<_> = extra.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
            head(stream, 200, &extra, content.len())?;
            return stream.write_all(&content);
        }
        self.respond_blob(stream, request, &faults, &content, &extra)
    }

    fn respond_blob(
        &self,
        stream: &mut TcpStream,
        request: &Request,
        faults: &Faults,
        content: &[u8],
        extra: &[(String, String)],
    ) -> std::io::Result<()> {
        let mut headers: Vec<_> = extra.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
        if request.method == "HEAD" && faults.refuse_head {
            return head(stream, 405, &[], 0);
        }
        if let Some(target) = &faults.redirect {
            let number = self.state.log.lock().unwrap().len();
            headers.push(("Location", format!("{target}{}?sig={number}", request.path)));
            return head(stream, faults.redirect_status.unwrap_or(307), &headers, 0);
        }
        if request.method == "HEAD" {
            return head(stream, 200, &headers, content.len());
        }
        if let Some(limit) = faults.expires_after {
            let mut signatures = self.state.signatures.lock().unwrap();
            let used = signatures.entry(request.path.clone()).or_default();
            *used += 1;
            if *used > limit {
                return head(stream, 403, &[], 0);
            }
        }
        if self.use_up(|faults| &mut faults.busy) {
            return head(stream, 503, &[], 0);
        }
        let (first, last) = match request.range() {
            Some(range) if !faults.ignore_range => range,
            _ => (0, content.len() - 1),
        };
        let Some(part) = content.get(first..=last) else { return head(stream, 416, &[], 0) };
        let mut part = part.to_vec();
        if part.len() > 1 && self.use_up(|faults| &mut faults.corrupt) {
            part[0] ^= 1;
        }
        let ranged = request.range().is_some() && !faults.ignore_range;
        if ranged {
            let from = first + usize::from(faults.wrong_range);
            headers.push(("Content-Range", format!("bytes {from}-{last}/{}", content.len())));
        }
        head(stream, if ranged { 206 } else { 200 }, &headers, part.len())?;
        let cut = part.len() > faults.cut.0 && self.use_up(|faults| &mut faults.cut.1);
        let stall = part.len() > faults.stall.0 && self.use_up(|faults| &mut faults.stall.1);
        let end = match (cut, stall) {
            (true, _) => faults.cut.0,
            (_, true) => faults.stall.0,
            _ => part.len(),
        };
        for piece in part[..end].chunks(PIECE) {
            thread::sleep(faults.pause);
            stream.write_all(piece)?;
            self.state.sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
        }
        if stall {
            stream.flush()?;
            thread::sleep(Duration::from_secs(3));
        }
        Ok(())
    }

    /// Whether a fault is left; decrements its counter.
    fn use_up(&self, counter: impl FnOnce(&mut Faults) -> &mut usize) -> bool {
        let mut faults = self.faults();
        let left = counter(&mut faults);
        let due = *left > 0;
        *left = left.saturating_sub(1);
        due
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Request { method, path, headers })
}

fn head(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    length: usize,
) -> std::io::Result<()> {
    let mut text =
        format!("HTTP/1.1 {status} Mock\r\nConnection: close\r\nContent-Length: {length}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes())
}

/// Random bytes, so that no two parts are equal.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(len);
    bytes
}
