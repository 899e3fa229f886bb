//! Bytes as what a client sends.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::LazyLock,
    thread,
    time::Duration,
};

use rullama_server::{Options, Server};
use tokio::runtime::Builder;

/// Longer than any request takes.
const PATIENCE: Duration = Duration::from_secs(20);

static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut options = Options::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.limits.head = Duration::from_millis(500);
    let server = runtime.block_on(Server::bind(options)).expect("a port");
    let address = server.address();
    thread::spawn(move || runtime.block_on(server.run(std::future::pending())));
    address
});

/// Sends the bytes on a connection of their own: the answer is HTTP or nothing, no failure of ours, and the next client is
/// served.
pub fn request(data: &[u8]) {
    let answer = ask(data, true);
    let text = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || text.starts_with("HTTP/1."), "{text}");
    assert!(!text.starts_with("HTTP/1.1 500"), "{text}");
    let healthy = b"GET /api/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let healthy = ask(healthy, false);
    assert!(healthy.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&healthy));
}

/// Sends the bytes, then perhaps the end of all requests, after which the server need not answer any more.
fn ask(bytes: &[u8], end: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(*ADDRESS).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    // The server may hang up before it has all of it.
    let _ = stream.write_all(bytes);
    if end {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        let waited =
            matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
        assert!(!waited, "the connection was never closed");
    }
    answer
}
