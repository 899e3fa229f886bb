//! A small HTTP server on this machine that counts the bytes it sends.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// The path of the file of a server with one file.
const ONLY: &str = "/folder/model.gguf";

/// How a server responds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Sends the range requested.
    Ranges,
    /// Sends the whole file for every request.
    Whole,
    /// Sends an HTML page.
    Page,
    /// Sends status 404.
    Missing,
}

/// A server with one or several files. It stops when dropped.
pub(crate) struct Server {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    manner: Manner,
    files: Vec<(String, Vec<u8>)>,
    sent: AtomicU64,
    stopped: AtomicBool,
}

impl Server {
    pub(crate) fn start(manner: Manner, file: Vec<u8>) -> Self {
        Self::with_files(manner, vec![(ONLY.into(), file)])
    }

    /// A server with files at these paths.
    pub(crate) fn with_files(manner: Manner, files: Vec<(String, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sent, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { manner, files, sent, stopped });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let serving = Arc::clone(&accepting);
                thread::spawn(move || serving.serve(stream));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(ONLY)
    }

    pub(crate) fn url_of(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Bytes of content sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some((path, range)) = requested_range(&mut reader) {
            let (head, body) = self.respond(&path, range);
            let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
            // The client may close the connection early.
            if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
                return;
            }
            self.sent.fetch_add(body.len() as u64, Ordering::SeqCst);
        }
    }

    fn respond(&self, path: &str, (first, last): (usize, usize)) -> (String, &[u8]) {
        let missing = ("404 Not Found".into(), &b"no such file"[..]);
        let Some((_, file)) = self.files.iter().find(|(known, _)| known == path) else {
            return missing;
        };
        let len = file.len();
        match self.manner {
            Manner::Ranges => {
                let last = last.min(len - 1);
                let head = format!("206 Partial\r\nContent-Range: bytes {first}-{last}/{len}");
                (head, &file[first..=last])
            }
            Manner::Whole => ("200 OK".into(), file),
            Manner::Page => ("200 OK\r\nContent-Type: text/html".into(), b"<html>Sign in</html>"),
            Manner::Missing => missing,
        }
    }
}

/// Path, first and last byte of the next request; `None` if the client closes the connection.
fn requested_range(reader: &mut impl BufRead) -> Option<(String, (usize, usize))> {
    let mut lines = reader.lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let range = headers.iter().find_map(|line| {
        let line = line.to_ascii_lowercase();
        line.strip_prefix("range: bytes=").map(str::to_owned)
    });
    let (first, last) = range.as_deref().unwrap_or("0-").split_once('-')?;
    Some((path, (first.parse().ok()?, last.parse().unwrap_or(usize::MAX))))
}
