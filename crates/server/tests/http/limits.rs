//! Clients that would hold the server: slow heads, too many connections, answers that nobody reads.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use proptest::prelude::*;
use rullama_gguf::{DType, Writer};

use crate::running::Running;

const SHORT: Duration = Duration::from_millis(300);
/// Longer than any limit here; what takes so long has failed.
const FOREVER: Duration = Duration::from_secs(30);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(FOREVER)).unwrap();
    stream
}

/// Whether the server ends a connection without another byte; a reset is an end, too.
fn ended(mut stream: TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
    }
}

fn version(stream: &mut TcpStream) -> String {
    write!(stream, "GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = [0; 1000];
    let count = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..count]).into_owned()
}

#[test]
fn slow_heads_and_silence_are_cut_off() {
    let server = Running::with(|options| options.limits.head = SHORT);
    let silent = connect(server.address);
    let mut slow = connect(server.address);
    slow.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    let mut kept = connect(server.address);
    assert!(version(&mut kept).starts_with("HTTP/1.1 200"));
    assert!(ended(silent), "nothing was ever sent");
    assert!(ended(kept), "kept alive without another request");
    // Some servers say 408 first.
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
    assert_eq!(server.get("/api/version").status, 200);
}

#[test]
fn connections_beyond_the_cap_wait_for_their_turn() {
    let server = Running::with(|options| options.limits.connections = 2);
    let mut first = connect(server.address);
    let mut second = connect(server.address);
    for stream in [&mut first, &mut second] {
        assert!(version(stream).starts_with("HTTP/1.1 200"));
    }
    let mut third = connect(server.address);
    third.set_read_timeout(Some(SHORT)).unwrap();
    write!(third, "GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let waits = third.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(waits.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waits}");
    drop(first);
    third.set_read_timeout(Some(FOREVER)).unwrap();
    assert_eq!(third.read(&mut [0; 1]).unwrap(), 1);
}

#[test]
fn stalled_downloads_end_and_slow_ones_do_not() {
    let server = Running::with(|options| options.limits.stalled = SHORT);
    let file = Writer::new().kv("general.architecture", "gemma4");
    let bytes = file.tensor("x", &[8 << 20], DType::F32, vec![7; 32 << 20]).finish().unwrap();
    let path = server.add("gemma4", &bytes);
    let start = || {
        let mut stream = connect(server.address);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        stream
    };
    let (mut stalled, mut slow) = (start(), start());
    // Reads a part, many times slower than the limit of one pause in all.
    let (began, mut piece, mut got) = (Instant::now(), vec![0; 1 << 20], 0);
    while began.elapsed() < 4 * SHORT {
        std::thread::sleep(SHORT / 10);
        got += slow.read(&mut piece).unwrap();
    }
    let mut rest = Vec::new();
    got += slow.read_to_end(&mut rest).unwrap();
    assert!(got > bytes.len(), "a slow download is whole: {got} bytes");
    let mut rest = Vec::new();
    let _ = stalled.read_to_end(&mut rest);
    assert!(rest.len() < bytes.len(), "a stalled one was given up: {} bytes", rest.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes on a socket are answered with a status or the end of the connection, and the next client is served.
    #[test]
    fn any_bytes_are_survived(bytes in raw_request()) {
        thread_local! {
            static SERVER: Running = Running::with(|options| options.limits.head = SHORT);
        }
        SERVER.with(|server| {
            let mut stream = connect(server.address);
            // The server may have hung up in the middle.
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let status = answer.get(..9) == Some(b"HTTP/1.1 ") || answer.get(..9) == Some(b"HTTP/1.0 ");
            assert!(answer.is_empty() || status, "{:?}", String::from_utf8_lossy(&answer));
            assert!(!answer.starts_with(b"HTTP/1.1 500"));
            assert_eq!(server.get("/api/version").status, 200);
        });
    }
}

/// Requests that are nearly right: damaged lines, odd paths, headers that contradict each other, and bytes of any kind.
fn raw_request() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof![Just("GET".to_owned()), Just("POST".into()), "[A-Z]{0,9}", ".{0,4}"];
    let path = prop_oneof![
        Just("/rullama/models".to_owned()),
        Just("/api/tags".into()),
        "/rullama/blobs/sha256-[0-9a-fA-F]{60,66}",
        "/(rullama|api)/[a-z%/.]{0,20}",
        "/?[ -~]{0,40}",
    ];
    let header = prop_oneof![
        Just("Host: localhost".to_owned()),
        "Range: bytes=[0-9,-]{0,30}",
        "Content-Length: [0-9-]{0,22}",
        "Transfer-Encoding: (chunked|gzip|x)",
        "Origin: https?://[a-z:0-9.]{0,12}",
        "(Expect|If-Range|If-None-Match|Connection|Upgrade): [ -~]{0,20}",
        "[ -~]{0,40}",
    ];
    let version = prop_oneof![Just("HTTP/1.1"), Just("HTTP/1.0"), Just("HTTP/2.0"), Just("")];
    let body = prop::collection::vec(any::<u8>(), 0..64);
    let request = (method, path, version, prop::collection::vec(header, 0..6), body.clone());
    let request = request.prop_map(|(method, path, version, headers, body)| {
        let head = format!("{method} {path} {version}\r\n{}\r\n\r\n", headers.join("\r\n"));
        [head.as_bytes(), &body].concat()
    });
    prop_oneof![4 => request, 1 => body]
}
