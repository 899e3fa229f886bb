//! Bytes as what a web server answers.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{Arc, LazyLock, Mutex},
    thread,
    time::Duration,
};

use pollster::block_on;
use rullama_source::{ByteSource, HttpOptions, HttpSource};

/// Answers to one request each are separated by this.
const NEXT: &[u8] = b"\n--next--\n";
/// The longest source that is read to its end.
const MOST_BYTES: u64 = 1 << 20;

/// A server that says what it is told to.
struct Liar {
    address: SocketAddr,
    answers: Arc<Mutex<Vec<Vec<u8>>>>,
}

static LIAR: LazyLock<Mutex<Liar>> = LazyLock::new(|| {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let answers = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
    let said = Arc::clone(&answers);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            let _ = connection.set_read_timeout(Some(Duration::from_secs(1)));
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(connection.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            let answer = said.lock().expect("no panic while locked").pop();
            // The client may be gone.
            let _ = connection.write_all(&answer.unwrap_or_default());
        }
    });
    Mutex::new(Liar { address, answers })
});

/// Reads a file from a server that answers with the bytes, redirects and ranges included: a source or an error, and never
/// more or other bytes than the server claimed.
pub fn http(data: &[u8]) {
    let liar = LIAR.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Whatever an answer leads to, it leads here and not into the network.
    let here = format!("://{}/", liar.address);
    let text: Vec<u8> = replaced(data, b"://", here.as_bytes());
    let mut answers: Vec<Vec<u8>> = split(&text, NEXT).map(<[u8]>::to_vec).collect();
    answers.reverse();
    *liar.answers.lock().expect("no panic while locked") = answers;
    let options = HttpOptions {
        attempts: 2,
        backoff: Duration::ZERO,
        stall: Duration::from_millis(500),
        redirects: 3,
    };
    match HttpSource::open(&format!("http://{}/model.gguf", liar.address), options) {
        Ok(source) => {
            let length = source.len();
            assert!(block_on(source.read(0..length.saturating_add(1))).is_err());
            for range in
                [0..length.min(1), 0..length.min(MOST_BYTES), length.saturating_sub(9)..length]
            {
                match block_on(source.read(range.clone())) {
                    Ok(bytes) => assert_eq!(bytes.len() as u64, range.end - range.start),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error without words: {error:?}"),
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
