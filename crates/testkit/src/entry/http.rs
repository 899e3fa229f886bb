//! Bytes as the responses of a web server.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{Arc, LazyLock, Mutex},
    thread,
    time::Duration,
};

use pollster::block_on;
use rullama_source::{ByteSource, HttpOptions, HttpSource};

/// Separator between the responses to successive requests.
const NEXT: &[u8] = b"\n--next--\n";
/// The longest source that is read to its end.
const MAX_BYTES: u64 = 1 << 20;

/// A server that sends prepared responses.
struct ScriptedServer {
    address: SocketAddr,
    responses: Arc<Mutex<Vec<Vec<u8>>>>,
}

static SERVER: LazyLock<Mutex<ScriptedServer>> = LazyLock::new(|| {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let responses = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
    let prepared = Arc::clone(&responses);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            let _ = connection.set_read_timeout(Some(Duration::from_secs(1)));
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(connection.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            let response = prepared.lock().expect("no panic while locked").pop();
            // The client may have disconnected.
            let _ = connection.write_all(&response.unwrap_or_default());
        }
    });
    Mutex::new(ScriptedServer { address, responses })
});

/// Reads a file from a server that sends the bytes as responses, including redirects and ranges: gives a source or
/// an error, and never more or other bytes than the server announced.
pub fn http(data: &[u8]) {
    let server = SERVER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // All URLs in responses point to this server, never to the network.
    let here = format!("://{}/", server.address);
    let text: Vec<u8> = replaced(data, b"://", here.as_bytes());
    let mut responses: Vec<Vec<u8>> = split(&text, NEXT).map(<[u8]>::to_vec).collect();
    responses.reverse();
    *server.responses.lock().expect("no panic while locked") = responses;
    let options = HttpOptions {
        attempts: 2,
        backoff: Duration::ZERO,
        stall: Duration::from_millis(500),
        redirects: 3,
    };
    match HttpSource::open(&format!("http://{}/model.gguf", server.address), options) {
        Ok(source) => {
            let length = source.len();
            assert!(block_on(source.read(0..length.saturating_add(1))).is_err());
            for range in
                [0..length.min(1), 0..length.min(MAX_BYTES), length.saturating_sub(9)..length]
            {
                match block_on(source.read(range.clone())) {
                    Ok(bytes) => assert_eq!(bytes.len() as u64, range.end - range.start),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error without a message: {error:?}")
        }
    }
}

fn replaced(data: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    split(data, from).collect::<Vec<_>>().join(to)
}

fn split<'a>(data: &'a [u8], at: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(data);
    std::iter::from_fn(move || {
        let data = rest.take()?;
        match data.windows(at.len()).position(|window| window == at) {
            Some(found) => {
                rest = Some(&data[found + at.len()..]);
                Some(&data[..found])
            }
            None => Some(data),
        }
    })
}
