//! Bytes as a client's HTTP request.

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
const TIMEOUT: Duration = Duration::from_secs(20);

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

/// Sends the bytes on a new connection: the response is HTTP or empty, never status 500, and the next client is served.
pub fn request(data: &[u8]) {
    let response = send(data, true);
    let text = String::from_utf8_lossy(&response);
    assert!(response.is_empty() || text.starts_with("HTTP/1."), "{text}");
    assert!(!text.starts_with("HTTP/1.1 500"), "{text}");
    let healthy = b"GET /api/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let healthy = send(healthy, false);
    assert!(healthy.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&healthy));
}

/// Sends the bytes and returns the response; `end` closes the sending side, after which the server need not respond.
fn send(bytes: &[u8], end: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(*ADDRESS).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes);
    if end {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut response = Vec::new();
    if let Err(error) = stream.read_to_end(&mut response) {
        let waited =
            matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
        assert!(!waited, "the connection was never closed");
    }
    response
}
