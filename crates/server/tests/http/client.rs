//! A client that sends exactly what it is told to.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use serde_json::Value;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
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
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    Answer::parse(&bytes)
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Self { status, headers: headers.collect(), body: bytes[end + 4..].to_vec() }
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
        assert_eq!(error["code"], code);
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
}
