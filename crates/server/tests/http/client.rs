//! A client that sends exactly what it is told to.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use serde_json::Value;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    path: String,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Sends one request on a connection of its own. `Host` is right unless it is among `headers`.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    send(address, method, path, headers, b"")
}

/// The same with a body, whose length is announced unless it is empty.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = begin(address, method, path, headers, body);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    Answer::parse(path, &bytes)
}

/// Sends a request and leaves its reply unread.
pub(crate) fn begin(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> TcpStream {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses a body need not read it.
    let _ = stream.write_all(body);
    stream
}

/// The content of a body in chunks.
fn joined(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let line = bytes.windows(2).position(|two| two == b"\r\n").expect("a chunk's length");
        let size = std::str::from_utf8(&bytes[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return out;
        }
        out.extend_from_slice(&bytes[line + 2..line + 2 + size]);
        bytes = &bytes[line + 4 + size..];
    }
}

impl Answer {
    fn parse(path: &str, bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        let headers: Vec<(String, String)> = headers.collect();
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        let body = &bytes[end + 4..];
        let body = if is_chunked { joined(body) } else { body.to_vec() };
        Self { path: path.to_owned(), status, headers, body }
    }

    /// A header, or "" where it is not there. None may come twice.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let value = values.next().map(|(_, value)| value.as_str()).unwrap_or_default();
        assert!(values.next().is_none(), "{name} twice: {:?}", self.headers);
        value
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Expects an error of this status and code, with words.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        let error = &self.json()["error"];
        if self.path.contains("/api/") {
            // Ollama's errors are a text alone.
            assert!(!error.as_str().unwrap().is_empty());
            return;
        }
        assert_eq!(error["code"], code);
        assert!(!error["message"].as_str().unwrap().is_empty());
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The objects of a stream: lines of JSON, or the data of server-sent events.
    #[track_caller]
    pub(crate) fn frames(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.text());
        let text = self.text();
        let lines = match self.header("content-type") {
            "application/x-ndjson" => text.lines().map(str::to_owned).collect::<Vec<_>>(),
            "text/event-stream" => {
                assert!(text.ends_with("\n\n"));
                let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
                data.filter(|data| *data != "[DONE]").map(str::to_owned).collect()
            }
            other => panic!("{other}: {text}"),
        };
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
